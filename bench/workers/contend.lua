-- contend URL PAGE INDEX: wants a lock that others want, through the Lua rock.
local page = require "page_lua"
local sneck = require "sneck"

local lock = assert(sneck.connect(arg[1])):lock("bench:lock", {ttl = 10})
local shared, index = page.open(arg[2]), math.tointeger(tonumber(arg[3]))

io.stdout:setvbuf("line")
for _ in io.lines() do
    local in_time
    repeat
        local asked_ns = page.now()
        assert(lock:acquire())
        in_time = page.hold(shared, index, asked_ns)
        assert(lock:release())
    until not in_time
    print("done")
end
