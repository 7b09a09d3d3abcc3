-- Hold a lock while one piece of work is done.
local sneck = require "sneck"

local client = assert(sneck.connect()) -- SNECK_URL, or else redis://localhost:6379

do
    -- released at the end of the block, which throws if the lock was lost meanwhile
    local _ <close> = assert(client:hold("reports:42", {ttl = 10, wait = 30}))
    print("reports:42 is ours")
end
