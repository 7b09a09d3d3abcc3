-- A racer with Lua: as racer.py. Arguments: KIND (ours), URL, TIMEOUT.
local sneck = require "sneck"

local _, url, timeout = table.unpack(arg)
local client = assert(sneck.connect(url))
io.stdout:setvbuf("line")
for name in io.lines() do
    local lock = client:legacy_lock(name, {timeout = tonumber(timeout)})
    local ok, message, code = lock:acquire(0)
    assert(ok or code == "BUSY", message)
    print(ok and 1 or 0)
end
