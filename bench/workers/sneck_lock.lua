-- sneck_lock URL...: acquire and release through the Lua rock; several are a quorum's.
local sneck = require "sneck"

local client = assert(#arg == 1 and sneck.connect(arg[1]) or sneck.quorum(arg))
local lock = client:lock("bench:lock", {ttl = 10})

io.stdout:setvbuf("line")
for line in io.lines() do
    for _ = 1, math.tointeger(tonumber(line)) do
        assert(lock:acquire(0))
        assert(lock:release())
    end
    print("done")
end
