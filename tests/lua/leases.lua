-- What the specs of leases share: waits for what must happen, however slow the machine is.
-- Those that take a `sleep` wait by it: a loop's own, in its coroutines.
local support = require "support"

local leases = {
    LIMIT = 30, -- seconds; what does not happen by then never will
    LONG = 60, -- a ttl that no spec outlasts
    LESS = 36, -- renewed at once, as it is less than two thirds of LONG; not over by the LIMIT
    SHORT = 0.4, -- a ttl that is to end
}

local blocking = support.connect()
local nothing = support.name()

--- Lets the server's clock go on, while Lua is blocked.
function leases.sleep(seconds)
    assert(blocking:execute("BLPOP", nothing, seconds) == nil)
end

--- Waits until something comes true that must.
function leases.wait_until(condition, sleep)
    local deadline = os.time() + leases.LIMIT
    sleep = sleep or leases.sleep
    while not condition() do
        assert(os.time() < deadline, "it never came true")
        sleep(0.01)
    end
end

--- Shortens a LONG lease, and waits until renewal has mended that; returns the token that the
-- server has then.
function leases.wait_for_renewal(lock, sleep)
    assert(lock:extend(leases.LESS))
    leases.wait_until(function()
        return blocking:execute("PTTL", lock:name()) > leases.LESS * 1000
    end, sleep)
    return blocking:execute("GET", lock:name())
end

--- Waits until the server has let a lease run out.
function leases.wait_for_end(name, sleep)
    leases.wait_until(function() return blocking:execute("EXISTS", name) == 0 end, sleep)
end

--- Takes a LONG lock away, and waits until its renewal has found that: which looks at once, as it
-- begins anew with less than two thirds left.
function leases.lose(lock, sleep)
    assert(lock:keep_alive(false))
    assert(lock:extend(leases.LESS))
    assert(blocking:force_release(lock:name()))
    assert(lock:keep_alive())
    leases.wait_until(function() return lock:lost() end, sleep)
end

--- All that a lock tells of itself.
function leases.states(lock)
    return {lock:owned(), lock:lost(), lock:lease(), lock:token() ~= nil}
end

return leases
