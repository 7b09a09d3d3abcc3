-- Calls a server that may be hostile and prints what came of it; see probe.c.
local sneck = require "sneck"

local url, timeout, verb = arg[1], tonumber(arg[2]) / 1000, arg[3]
local client = assert(sneck.connect(url, {timeout = timeout}))
local lock = client:adopt("door", "mine")

local function execute()
  return client:execute("GET", "door")
end

local calls = {
  acquire = function() return lock:acquire(0) end,
  release = function() return lock:release() end,
  extend = function() return lock:extend() end,
  holder = function() return lock:holder() end,
  execute = execute,
  twice = function()
    execute()
    return execute()
  end,
}

local value, _, code = calls[verb]()
print(code or ((verb == "twice" and value .. " " or "") .. "OK"))
client:close()
