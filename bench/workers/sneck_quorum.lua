-- sneck_quorum URL...: acquire and release on several servers through the Lua rock.
local sneck = require "sneck"

local lock = assert(sneck.quorum(arg)):lock("bench:lock", {ttl = 10})

io.stdout:setvbuf("line")
for line in io.lines() do
    for _ = 1, math.tointeger(tonumber(line)) do
        assert(lock:acquire(0))
        assert(lock:release())
    end
    print("done")
end
