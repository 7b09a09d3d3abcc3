-- Let many coroutines wait for one lock; however many they are, they share two connections.
local async = require "sneck.async"

local loop = async.loop()
local client = assert(async.connect(loop)) -- SNECK_URL, or else redis://localhost:6379

for number = 1, 3 do
    loop:spawn(function()
        -- released at the end of the block, which throws if the lock was lost meanwhile
        local _ <close> = assert(client:hold("reports:42", {ttl = 10, wait = 30}))
        print("reports:42 is ours, for coroutine " .. number)
        loop:sleep(0.01) -- the others go on meanwhile
    end)
end
loop:run()
