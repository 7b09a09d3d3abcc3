-- Adds 1 to the number at a key, many times, without a lock.
--
--     adder.lua URL KEY TIMES
--
-- Prints "ready", waits for a line on stdin, and prints the most attempts that one
-- addition took, and the number that the last one wrote.
local sneck = require "sneck"

local url, key, times = ...
local client = assert(sneck.connect(url))
local most, attempts, last = 0, 0, nil

local function add_one(old)
    attempts = attempts + 1
    return math.tointeger(old or 0) + 1
end

print("ready")
io.stdout:flush()
io.read()
for _ = 1, tonumber(times) do
    attempts = 0
    last = assert(client:update(key, add_one, {wait = math.huge}))
    most = math.max(most, attempts)
end
print(most, last)
