-- add URL PAGE INDEX: adds 1 to the number at a key that others add to, too, through
-- the Lua rock.
local page = require "page_lua"
local sneck = require "sneck"

local client = assert(sneck.connect(arg[1]))
local shared, index = page.open(arg[2]), math.tointeger(tonumber(arg[3]))

local function add_one(old)
    return math.tointeger(tonumber(old or 0)) + 1
end

io.stdout:setvbuf("line")
for _ in io.lines() do
    local begun_ns
    repeat
        begun_ns = page.now()
        assert(client:update("bench:number", add_one))
    until not page.count(shared, index, begun_ns)
    print("done")
end
