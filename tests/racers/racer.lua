-- A racer with Lua: as racer.py. Arguments: KIND (ours, ours-ms), URL, TIMEOUT.
local sneck = require "sneck"

local kind, url, timeout = table.unpack(arg)
local client = assert(sneck.connect(url))
local verbs, lock = {}, nil

function verbs.take(name)
    lock = client:legacy_lock(name, {
        timeout = tonumber(timeout), milliseconds = kind == "ours-ms",
    })
    local ok, message, code = lock:acquire(0)
    assert(ok or code == "BUSY", message)
    return ok and "won" or "lost"
end

function verbs.release()
    local ok, message, code = lock:release()
    assert(ok or code == "NOT_OWNER", message)
    return ok and "released" or "not-owner"
end

io.stdout:setvbuf("line")
for line in io.lines() do
    local verb, name = line:match("^(%S+) (%S+)$")
    print(verbs[verb](name))
end
