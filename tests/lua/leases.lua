-- What the specs of leases and re-entrant locks share: ways to outlive a lease and to lose one.
local support = require "support"

local leases = {
    TTL = 0.4,
    LIMIT = 30, -- seconds; for what takes less than one
}

local blocking = support.connect()
local nothing = support.name()

--- Lets the server's clock go on, while Lua is blocked.
function leases.sleep(seconds)
    assert(blocking:execute("BLPOP", nothing, seconds) == nil)
end

--- Waits until a lease would be long over; returns the token that the server has then.
function leases.outlive(name, sleep)
    sleep = sleep or leases.sleep
    sleep(2 * leases.TTL)
    return blocking:execute("GET", name)
end

--- Takes the lock away, and waits until its renewal has found that.
function leases.lose(client, lock, sleep)
    local deadline = os.time() + leases.LIMIT
    sleep = sleep or leases.sleep
    assert(client:force_release(lock:name()))
    while not lock:lost() do
        assert(os.time() < deadline, "it did not happen in time")
        sleep(0.01)
    end
end

--- All that a lock tells of itself.
function leases.states(lock)
    return {lock:owned(), lock:lost(), lock:lease(), lock:token() ~= nil}
end

return leases
