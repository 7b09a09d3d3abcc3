-- How the runner's calls are done: blocking, with ops for those that are left waiting; or as
-- coroutines of one loop, in which the runner itself is one.
--
-- A mode has connect(url, options); start(lock, wait), which gives a call left waiting with step(),
-- true at its end, and result(); sleep(milliseconds); and run(main), which returns what main does.
local async = require "sneck.async"
local sneck = require "sneck"

local mode = {}

--- Lua has no sleep of its own: `pause` does it.
function mode.blocking(pause)
  return {
    connect = sneck.connect,
    start = function(lock, wait) return lock:acquire_start(wait) end,
    sleep = pause,
    run = function(main) return main() end,
  }
end

local function start(loop, lock, wait)
  local results
  loop:spawn(function() results = table.pack(pcall(lock.acquire, lock, wait)) end)
  return {
    step = function() return results ~= nil end,
    result = function()
      if not results[1] then
        error(results[2], 0)
      end
      return table.unpack(results, 2, results.n)
    end,
  }
end

function mode.coroutine()
  local loop = async.loop()
  return {
    connect = function(...) return async.connect(loop, ...) end,
    start = function(lock, wait) return start(loop, lock, wait) end,
    sleep = function(milliseconds) loop:sleep(milliseconds / 1000) end,
    run = function(main)
      local result
      loop:spawn(function() result = main() end)
      loop:run()
      return result
    end,
  }
end

return mode
