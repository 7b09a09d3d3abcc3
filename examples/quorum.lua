-- Hold a lock on several servers, of which a majority must agree.
--
--     lua quorum.lua redis://one redis://two redis://three
local sneck = require "sneck"

local client = assert(sneck.quorum({table.unpack(arg)}))

local lock <close>, message, code, _, details =
    client:hold("reports:42", {ttl = 10, wait = 30})
if lock then
    print(("reports:42 is ours for %.1f s, at %d servers"):format(lock:remaining(),
        #client:servers()))
elseif code == "QUORUM" then
    for address, reason in pairs(details.servers) do
        io.stderr:write(address, ": ", reason, "\n")
    end
    os.exit(1)
else
    error(message)
end
