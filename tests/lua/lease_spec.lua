-- A lease that is renewed lasts, one that is lost is known, and a fence tells old from new.
local leases = require "leases"
local support = require "support"

local TTL, sleep, states = leases.TTL, leases.sleep, leases.states

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

local function outlive()
    return leases.outlive(name)
end

local function lose(lock)
    leases.lose(client, lock)
end

describe("a renewed lease", function()
    it("lasts as long as a <close> block", function()
        local kept
        do
            local lock <close> = assert(client:hold(name, {ttl = TTL}))
            kept = lock
            assert.equal(lock:token(), outlive())
            assert.same({true, false, "held", true}, states(lock))
        end
        assert.is_nil(client:execute("GET", name))
        assert.same({false, false, "none", false}, states(kept))
    end)

    it("lasts as long as a function", function()
        assert.is_true(client:with_lock(name, {ttl = TTL}, function(lock)
            return outlive() == lock:token()
        end))
    end)

    it("lasts while Lua computes", function()
        local lock <close> = assert(client:hold(name, {ttl = TTL}))
        local start, sum = os.clock(), 0
        while os.clock() - start < 2 * TTL do
            sum = sum + 1
        end
        assert.is_true(lock:owned())
        assert.equal(lock:token(), client:execute("GET", name))
    end)

    it("ends with the block when told not to be renewed", function()
        local options = {ttl = TTL, renew = false}
        local ok, err = pcall(client.with_lock, client, name, options, function(lock)
            assert.is_nil(outlive())
            assert.same({false, true, "lost", true}, states(lock))
        end)
        assert.is_false(ok)
        assert.matches("lost before its release", err)
    end)

    for _, case in ipairs {{nil, false}, {false, false}, {true, true}} do
        it(("is kept by acquire() with renew = %s: %s"):format(case[1], case[2]), function()
            local lock = client:lock(name, {ttl = TTL, renew = case[1]})
            assert(lock:acquire())
            assert.equal(case[2], outlive() ~= nil)
            assert.equal(case[2], lock:owned())
        end)
    end

    it("begins and ends by keep_alive()", function()
        local lock = client:lock(name, {ttl = TTL})
        local ok, message, code = lock:keep_alive()
        assert.same({nil, "NOT_OWNER"}, {ok, code})
        assert.matches(name .. ".*acquire it first", message)
        assert(lock:acquire())
        assert.is_true(lock:keep_alive())
        assert.equal(lock:token(), outlive())
        assert.is_true(lock:keep_alive(false))
        assert.is_nil(outlive())
        assert.is_true(lock:lost())
    end)

    it("ends after max_hold", function()
        local ok = pcall(function()
            local _ <close> = assert(client:hold(name, {ttl = TTL, max_hold = 0.001}))
            assert.is_nil(outlive())
        end)
        assert.is_false(ok)
    end)

    it("ends with its object", function()
        assert(client:lock(name, {ttl = TTL, renew = true}):acquire())
        support.collect()
        assert.is_nil(outlive())
    end)

    it("ends with its client", function()
        local closing = support.connect()
        local lock = closing:lock(name, {ttl = TTL, renew = true})
        assert(lock:acquire())
        closing:close()
        local _, message, code = lock:keep_alive()
        assert.equal("INVALID", code)
        assert.matches(name .. ".*closed", message)
        assert.is_nil(outlive())
        assert.is_true(lock:lost())
    end)

    it("ends with its release, and leaves nothing that is renewed", function()
        for number = 1, 300 do
            local part = name .. number % 7
            pcall(function()
                local _ <close> = assert(client:hold(part, {ttl = TTL}))
                error("interrupted")
            end)
        end
        sleep(TTL) -- a ghost would have been renewed
        assert(client:execute("CONFIG", "RESETSTAT"))
        sleep(TTL)
        assert.is_nil(client:execute("INFO", "commandstats"):find("evalsha", 1, true))
    end)

    it("is that of an adopted lock, once held", function()
        local first = client:lock(name, {ttl = TTL})
        assert(first:acquire())
        do
            local lock <close> = assert(client:adopt(name, first:token(), {ttl = TTL}):hold())
            assert.equal(first:token(), outlive())
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
        local lock = client:lock(name, {ttl = TTL})
        do
            local held <close> = assert(lock:hold())
            assert.equal(lock, held)
            assert.equal(lock:token(), outlive())
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
            local lock <close> = assert(client:hold(name, {ttl = TTL}))
            lose(lock)
            assert.same({false, true, "lost", false}, states(lock))
        end)
        assert.is_false(ok)
        assert.matches("^.-lease_spec.lua:%d+: lock .- lost before its release", err)
        assert.matches(name, err)
        assert.equal(1, client:stats().losses)
    end)

    it("is thrown behind a function", function()
        local ok, err = pcall(client.with_lock, client, name, {ttl = TTL}, function(lock)
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
        local ok, err = pcall(client.with_lock, client, name, {ttl = TTL}, body)
        assert.same({false, failure}, {ok, err})
        ok, err = pcall(function()
            local lock <close> = assert(client:hold(name, {ttl = TTL}))
            body(lock)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
    end)

    it("is told when it is released by its user, too", function()
        local ok = pcall(client.with_lock, client, name, {ttl = TTL}, function(lock)
            lose(lock)
            assert.equal("NOT_OWNER", select(3, lock:release()))
        end)
        assert.is_false(ok)
    end)

    it("can be acquired again, and is not lost then", function()
        local lock = client:lock(name, {ttl = TTL, renew = true})
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
        local lock = client:lock(name, {ttl = TTL, fence = true, renew = true})
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
        local clone = client:lock(name, {ttl = TTL, renew = true}):clone()
        assert(clone:acquire())
        assert.equal(clone:token(), outlive())
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
