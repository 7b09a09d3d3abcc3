-- Take the next seat by compare-and-set: without a lock, and without two in one seat.
local sneck = require "sneck"

local SEATS = 100

local client = assert(sneck.connect()) -- SNECK_URL, or else redis://localhost:6379

-- Decides by the old value. It is run again if another client was faster, so it does no more.
local function take_next(taken)
    local seat = tonumber(taken or 0) + 1
    if seat > SEATS then
        error("no seat is free") -- nothing is written
    end
    return seat
end

-- nil, a message and "CONFLICT" if others were faster 16 times
local seat = assert(client:update("seats:taken", take_next))
print("seat " .. seat .. " is ours")
