-- A lease that is renewed lasts, one that is lost is known, and a fence tells old from new.
local leases = require "leases"
local support = require "support"

local LONG, SHORT = leases.LONG, leases.SHORT
local lose, states = leases.lose, leases.states
local wait_for_end, wait_for_renewal = leases.wait_for_end, leases.wait_for_renewal

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

describe("a renewed lease", function()
    it("lasts as long as a <close> block", function()
        local kept
        do
            local lock <close> = assert(client:hold(name, {ttl = LONG}))
            kept = lock
            assert.equal(lock:token(), wait_for_renewal(lock))
            assert.same({true, false, "held", true}, states(lock))
        end
        assert.is_nil(client:execute("GET", name))
        assert.same({false, false, "none", false}, states(kept))
    end)

    it("lasts as long as a function", function()
        assert.is_true(client:with_lock(name, {ttl = LONG}, function(lock)
            return wait_for_renewal(lock) == lock:token()
        end))
    end)

    it("lasts while Lua computes", function()
        local lock <close> = assert(client:hold(name, {ttl = LONG}))
        assert(lock:extend(leases.LESS))
        local function compute() end
        leases.wait_until(function() return lock:remaining() > leases.LESS end, compute)
        assert.equal(lock:token(), client:execute("GET", name))
    end)

    it("ends with the block when told not to be renewed", function()
        local options = {ttl = SHORT, renew = false}
        local ok, err = pcall(client.with_lock, client, name, options, function(lock)
            wait_for_end(name)
            assert.same({false, true, "lost", true}, states(lock))
        end)
        assert.is_false(ok)
        assert.matches("lost before its release", err)
    end)

    it("is not kept by acquire() unless told so", function()
        for _, options in ipairs {{ttl = SHORT}, {ttl = SHORT, renew = false}} do
            local lock = client:lock(name, options)
            assert(lock:acquire())
            wait_for_end(name)
            assert.is_false(lock:owned())
        end
    end)

    it("is kept by acquire() where told so", function()
        local lock = client:lock(name, {ttl = LONG, renew = true})
        assert(lock:acquire())
        assert.equal(lock:token(), wait_for_renewal(lock))
        assert.is_true(lock:owned())
    end)

    it("begins and ends by keep_alive()", function()
        local lock = client:lock(name, {ttl = LONG})
        local ok, message, code = lock:keep_alive()
        assert.same({nil, "NOT_OWNER"}, {ok, code})
        assert.matches(name .. ".*acquire it first", message)
        assert(lock:acquire())
        assert.is_true(lock:keep_alive())
        assert.equal(lock:token(), wait_for_renewal(lock))
        assert.is_true(lock:keep_alive(false))
        assert(lock:extend(SHORT))
        wait_for_end(name)
        assert.is_true(lock:lost())
    end)

    it("ends after max_hold", function()
        local ok, err = pcall(function()
            local _ <close> = assert(client:hold(name, {ttl = SHORT, max_hold = 0.001}))
            wait_for_end(name)
        end)
        assert.is_false(ok)
        assert.matches("lost before its release", err)
    end)

    it("ends with its object", function()
        assert(client:lock(name, {ttl = SHORT, renew = true}):acquire())
        support.collect()
        wait_for_end(name)
    end)

    it("ends with its client", function()
        local closing = support.connect()
        local lock = closing:lock(name, {ttl = SHORT, renew = true})
        assert(lock:acquire())
        closing:close()
        wait_for_end(name)
        assert.is_true(lock:lost())
    end)

    it("leaves no connection when its client is closed", function()
        local closing = support.connect {client_name = name}
        local lock = closing:lock(name, {ttl = LONG, renew = true})
        assert(lock:acquire())
        wait_for_renewal(lock)
        local _, connections = client:execute("CLIENT", "LIST"):gsub(" name=" .. name .. " ", "")
        assert.equal(2, connections)
        closing:close()
        leases.wait_until(function()
            return not client:execute("CLIENT", "LIST"):find(" name=" .. name .. " ", 1, true)
        end)
        assert.equal("held", lock:lease())
    end)

    it("does not begin when its client is closed", function()
        local lock = client:lock(name, {ttl = LONG})
        assert(lock:acquire())
        client:close()
        local _, message, code = lock:keep_alive()
        assert.equal("INVALID", code)
        assert.matches(name .. ".*closed", message)
    end)

    it("ends with its release, and leaves nothing that is renewed", function()
        support.collect() -- of the specs before, no lock is to be renewed now
        local other <close> = assert(client:hold(name, {ttl = LONG}))
        for number = 1, 300 do
            local part = name .. number % 7
            pcall(function()
                local _ <close> = assert(client:hold(part, {ttl = SHORT}))
                error("interrupted")
            end)
        end
        for _ = 1, 2 do -- what was under way is on the server before the second one
            wait_for_renewal(other)
        end
        assert(client:execute("CONFIG", "RESETSTAT"))
        leases.sleep(SHORT) -- a ghost would be renewed
        wait_for_renewal(other) -- two scripts: its extend() and its renewal
        assert.matches("cmdstat_evalsha:calls=2,", client:execute("INFO", "commandstats"))
    end)

    it("is that of an adopted lock, once held", function()
        local first = client:lock(name, {ttl = LONG})
        assert(first:acquire())
        do
            local lock <close> = assert(client:adopt(name, first:token(), {ttl = LONG}):hold())
            assert.equal(first:token(), wait_for_renewal(lock))
            assert.is_true(lock:owned())
        end
        assert.is_nil(client:execute("GET", name))
        local stranger = client:adopt(name, "another")
        assert.same({false, false, "uncertain", true}, states(stranger))
        local _, _, code = stranger:hold()
        assert.equal("NOT_OWNER", code)
    end)
end)

describe("hold() of a lock", function()
    it("acquires and renews it, and gives the lock", function()
        local lock = client:lock(name, {ttl = LONG})
        do
            local held <close> = assert(lock:hold())
            assert.equal(lock, held)
            assert.equal(lock:token(), wait_for_renewal(lock))
        end
        assert.is_nil(client:execute("GET", name))
    end)

    it("waits as it is told", function()
        support.take(client, name)
        assert.equal("BUSY", select(3, client:lock(name):hold(0)))
        assert.equal("BUSY", select(3, client:lock(name, {wait = 0}):hold()))
    end)
end)

describe("a lost lock", function()
    it("is known while the body runs, and thrown behind it", function()
        local ok, err = pcall(function()
            local lock <close> = assert(client:hold(name, {ttl = LONG}))
            lose(lock)
            assert.same({false, true, "lost", false}, states(lock))
        end)
        assert.is_false(ok)
        assert.matches("^.-lease_spec.lua:%d+: lock .- lost before its release", err)
        assert.matches(name, err)
        assert.equal(1, client:stats().losses)
    end)

    it("is thrown behind a function", function()
        local ok, err = pcall(client.with_lock, client, name, {ttl = LONG}, function(lock)
            lose(lock)
            return "a result that may be wrong"
        end)
        assert.is_false(ok)
        assert.matches("lost before its release", err)
    end)

    it("never replaces an error under way", function()
        local failure = {}
        local function body(lock)
            lose(lock)
            error(failure)
        end
        local ok, err = pcall(client.with_lock, client, name, {ttl = LONG}, body)
        assert.same({false, failure}, {ok, err})
        ok, err = pcall(function()
            local lock <close> = assert(client:hold(name, {ttl = LONG}))
            body(lock)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
    end)

    it("is told when it is released by its user, too", function()
        local ok, err = pcall(client.with_lock, client, name, {ttl = LONG}, function(lock)
            lose(lock)
            assert.equal("NOT_OWNER", select(3, lock:release()))
        end)
        assert.is_false(ok)
        assert.matches("^.-lock .- lost", err)
    end)

    it("can be acquired again, and is not lost then", function()
        local lock = client:lock(name, {ttl = LONG, renew = true})
        assert(lock:acquire())
        lose(lock)
        assert(lock:acquire())
        assert.same({true, false, "held", true}, states(lock))
        assert(lock:release())
    end)
end)

describe("a fence", function()
    it("grows with each acquire, also without its counter, and stays the same otherwise", function()
        local last, options = 0, {fence = true}
        local locks = {client:lock(name, options), client:lock(name, options)}
        assert.is_nil(locks[1]:fence())
        for number = 1, 20 do
            local lock <close> = assert(locks[number % 2 + 1]:hold())
            local fence = lock:fence()
            assert.equal("integer", math.type(fence))
            assert.is_true(fence > last)
            assert(lock:extend())
            assert.equal(fence, lock:fence())
            last = fence
            client:execute("DEL", ("{%s}:sneck:fence"):format(name))
        end
        assert.is_nil(locks[1]:fence())
    end)

    it("is not there unless asked for, nor for an adopted lock", function()
        local lock <close> = assert(client:hold(name))
        assert.is_nil(lock:fence())
        local adopted = client:adopt(name, lock:token(), {fence = true})
        assert(adopted:extend())
        assert.is_nil(adopted:fence())
    end)

    it("of a lost lock is still known", function()
        local lock = client:lock(name, {ttl = LONG, fence = true, renew = true})
        assert(lock:acquire())
        local fence = lock:fence()
        lose(lock)
        assert.equal(fence, lock:fence())
    end)
end)

describe("a clone", function()
    it("has the options, and owns nothing", function()
        local lock = client:lock(name, {
            ttl = 7, wait = 0, label = "me", fair = true, poll = 1,
            renew = true, max_hold = 60, fence = true,
        })
        do
            local _ <close> = assert(lock:hold())
            local clone = lock:clone()
            assert.same({name, 7}, {clone:name(), clone:ttl()})
            assert.same({false, false, "none", false}, states(clone))
            assert.equal("BUSY", select(3, clone:acquire()))
        end
        local clone = lock:clone():clone()
        assert(clone:acquire())
        assert.equal("me", clone:holder().label)
        assert.is_number(clone:fence())
        assert(clone:release())
    end)

    it("of an adopted lock has no token", function()
        assert.is_nil(client:adopt(name, "token"):clone():token())
    end)

    it("is renewed as the first one is", function()
        local clone = client:lock(name, {ttl = LONG, renew = true}):clone()
        assert(clone:acquire())
        assert.equal(clone:token(), wait_for_renewal(clone))
        assert(clone:release())
    end)
end)

describe("misuse of leases", function()
    it("throws before anything is sent", function()
        local nowhere = support.nowhere()
        for option, value in pairs {renew = 1, fence = "yes", max_hold = 0} do
            assert.has_error(function() nowhere:lock(name, {[option] = value}) end)
            assert.has_error(function() nowhere:rlock(name, {[option] = value}) end)
            assert.has_error(function() nowhere:hold(name, {[option] = value}) end)
        end
        local lock = nowhere:lock(name)
        assert.has_error(function() lock:keep_alive(1) end, "on must be true or false, not number")
        assert.has_error(function() lock:hold(-1) end, "wait must be 0 or more seconds, not -1")
        assert.has_error(function() nowhere:rlock("") end)
    end)
end)
