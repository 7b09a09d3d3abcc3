-- How the runner's calls are done: blocking, with ops for those that are left waiting; or as
-- coroutines of one loop, in which the runner itself is one.
--
-- A mode has connect(url, options) and quorum(urls, options); start(object, call, ...), which
-- gives a call left waiting with step(), true at its end, and result(); sleep(milliseconds);
-- run(main), which returns what main does; and owner(), a coroutine that makes one call after the
-- other: its call(function, ...) gives what pcall() would, and close() ends it.
local async = require "sneck.async"
local sneck = require "sneck"

local mode = {}

local TURN = 0.001 -- seconds between two looks for a call, or for its answer

-- An owner that the runner resumes.
local function resumed_owner()
  return {
    call = coroutine.wrap(function(...)
      local job = table.pack(...)
      while true do
        job = table.pack(coroutine.yield(pcall(table.unpack(job, 1, job.n))))
      end
    end),
    close = function() end,
  }
end

--- Lua has no sleep of its own: `pause` does it.
function mode.blocking(pause)
  return {
    connect = sneck.connect,
    quorum = sneck.quorum,
    start = function(object, call, ...) return object[call .. "_start"](object, ...) end,
    sleep = pause,
    owner = resumed_owner,
    run = function(main) return main() end,
  }
end

local function start(loop, object, call, ...)
  local results
  local arguments = table.pack(object, ...)
  loop:spawn(function()
    results = table.pack(pcall(object[call], table.unpack(arguments, 1, arguments.n)))
  end)
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

-- An owner that the loop resumes, as its calls wait.
local function spawned_owner(loop)
  local job, answer
  local thread = loop:spawn(function()
    while true do
      if job then
        answer, job = table.pack(pcall(table.unpack(job, 1, job.n))), nil
      end
      loop:sleep(TURN)
    end
  end)
  return {
    call = function(...)
      job, answer = table.pack(...), nil
      repeat
        loop:sleep(TURN)
      until answer
      return table.unpack(answer, 1, answer.n)
    end,
    close = function() coroutine.close(thread) end,
  }
end

function mode.coroutine()
  local loop = async.loop()
  return {
    connect = function(...) return async.connect(loop, ...) end,
    quorum = function(...) return async.quorum(loop, ...) end,
    start = function(...) return start(loop, ...) end,
    sleep = function(milliseconds) loop:sleep(milliseconds / 1000) end,
    owner = function() return spawned_owner(loop) end,
    run = function(main)
      local result
      loop:spawn(function() result = main() end)
      loop:run()
      return result
    end,
  }
end

return mode
