-- counter HOW WHERE TIMES: add one to a number, TIMES times.
--
--   file    the number in the file WHERE
--   lock    the same, each time under the lock of that name
--   key     the number at the key WHERE of the server, by GET and SET
--   update  the same, by compare-and-set
local sneck = require "sneck"

local how, where, times = table.unpack(arg)
local client = assert(sneck.connect())

-- The first time, says that we are here and waits until the input ends. Counters that do
-- so between reading and writing have all read before the first one writes.
local function meet()
    if io.type(io.stdin) == "closed file" then return end
    print("here")
    io.stdout:flush()
    io.read("a")
    io.stdin:close()
end

local ways = {}

function ways.file()
    local file <close> = assert(io.open(where, "r+"))
    local number = file:read("n")
    meet()
    file:seek("set")
    file:write(("%10d\n"):format(number + 1)) -- one width: no old digit stays
end

function ways.lock()
    meet()
    local _ <close> = assert(client:hold(where, {ttl = 10, wait = 60}))
    ways.file()
end

function ways.key()
    local number = tonumber(assert(client:execute("GET", where)))
    meet()
    assert(client:execute("SET", where, number + 1))
end

-- called again when another counter was faster, so it only decides
local function add_one(old)
    return tonumber(old or 0) + 1
end

function ways.update()
    meet()
    assert(client:update(where, add_one))
end

for _ = 1, tonumber(times) do
    ways[how]()
end
