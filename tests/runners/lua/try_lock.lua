-- The verbs of locks that are a key and a value.
local arguments = require "arguments"

local try_lock = {}

--- Adds them. `done` tells a call that gives nothing but success.
function try_lock.add(verbs, done)
  function verbs.try_lock(self, words, leave)
    local given = arguments.read(words, 2, "expire", "wait")
    local key, value, options = given[1], given[2], given.options
    local expire_ms = math.tointeger(tonumber(options.expire or "60000"))
    local timeout_ms = options.wait == "forever" and math.huge
      or math.tointeger(tonumber(options.wait or "0"))
    local client = self:made()
    if leave then
      return self:start(nil, client, "try_lock", key, value, expire_ms, timeout_ms)
    end
    return done(client.try_lock, client, key, value, expire_ms, timeout_ms)
  end

  function verbs.release_lock(self, words)
    local given = arguments.read(words, 2)
    local client = self:made()
    return done(client.release_lock, client, given[1], given[2])
  end
end

return try_lock
