-- counter FILE TIMES [NAME]: add one to the number in FILE, TIMES times.
--
-- With NAME, each addition holds the lock of that name. Begins when a line
-- comes in, so that all the counters of the demo begin together.
local sneck = require "sneck"

local path, times, name = table.unpack(arg)

local function add_one()
    local file <close> = assert(io.open(path, "r+"))
    local number = file:read("n")
    file:seek("set")
    file:write(("%10d\n"):format(number + 1)) -- one width: no old digit stays
end

local client = name and assert(sneck.connect())

local function add_one_locked()
    local _ <close> = assert(client:hold(name, {ttl = 10, wait = 60}))
    add_one()
end

io.read()
for _ = 1, math.tointeger(tonumber(times)) do
    if client then
        add_one_locked()
    else
        add_one()
    end
end
