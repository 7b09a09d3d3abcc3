-- A lease that is renewed lasts, one that is lost is known, a fence tells old from new, and
-- a re-entrant lock counts for its coroutine.
local support = require "support"

local TTL = 0.4
local LIMIT = 30 -- seconds; for what takes less than one

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

-- Lets the server's clock go on, while Lua is blocked.
local function sleep(seconds)
    assert(client:execute("BLPOP", name .. ":nothing", seconds) == nil)
end

-- Waits until a lease would be long over; returns the token that the server has then.
local function outlive()
    sleep(2 * TTL)
    return client:execute("GET", name)
end

local function wait_until(condition)
    local deadline = os.time() + LIMIT
    while not condition() do
        assert(os.time() < deadline, "it did not happen in time")
        sleep(0.01)
    end
end

-- Takes the lock away, and waits until its renewal has found that.
local function lose(lock)
    assert(client:force_release(name))
    wait_until(function() return lock:lost() end)
end

local function states(lock)
    return {lock:owned(), lock:lost(), lock:lease(), lock:token() ~= nil}
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

-- Runs a function in a coroutine of its own; returns what it returns.
local function elsewhere(body, ...)
    return coroutine.wrap(body)(...)
end

describe("a re-entrant lock", function()
    it("may be acquired again by its coroutine", function()
        local lock = client:rlock(name, {wait = 0})
        do
            local _ <close> = assert(lock:hold())
            local token = lock:token()
            do
                local _ <close> = assert(lock:hold())
                assert(lock:acquire(0))
                assert(lock:release())
                assert.equal(token, lock:token())
            end
            assert.equal(token, client:execute("GET", name))
        end
        assert.is_nil(client:execute("GET", name))
        assert.equal(1, client:stats().acquisitions)
    end)

    it("is released when it was released as often", function()
        local lock = client:rlock(name)
        for _ = 1, 3 do
            assert(lock:acquire())
        end
        for _ = 1, 3 do
            assert.is_string(client:execute("GET", name))
            assert.is_true(lock:release())
        end
        assert.is_nil(client:execute("GET", name))
        local _, message, code = lock:release()
        assert.equal("NOT_OWNER", code)
        assert.matches(name, message)
    end)

    it("keeps other coroutines out, and tells them of themselves", function()
        local lock = client:rlock(name, {fence = true, wait = 0})
        local _ <close> = assert(lock:hold())
        elsewhere(function()
            assert.equal("BUSY", select(3, lock:acquire()))
            assert.equal("BUSY", select(3, lock:hold()))
            assert.same({false, false, "none", false}, states(lock))
            assert.is_nil(lock:fence())
            assert.equal("NOT_OWNER", select(3, lock:release()))
            assert.equal("NOT_OWNER", select(3, lock:extend()))
            assert.equal("NOT_OWNER", select(3, lock:keep_alive()))
            assert.is_true(lock:locked())
            assert.matches("not owned", tostring(lock))
        end)
        assert.same({true, false, "held", true}, states(lock))
        assert.is_number(lock:fence())
        assert.matches("^sneck.rlock .* %(owned%)$", tostring(lock))
    end)

    it("is not inherited from a coroutine that is gone", function()
        local lock = client:rlock(name, {wait = 0, ttl = 60})
        elsewhere(function() assert(lock:acquire()) end)
        for _ = 1, 1000 do -- one of these gets its address
            assert.is_false(elsewhere(function() return lock:owned() end))
            collectgarbage("step")
        end
        support.collect()
        assert.equal("BUSY", select(3, elsewhere(function() return lock:acquire() end)))
    end)

    it("is released when its coroutine is closed by another", function()
        local lock = client:rlock(name)
        local routine = coroutine.create(function()
            local _ <close> = assert(lock:hold())
            coroutine.yield()
        end)
        assert(coroutine.resume(routine))
        assert.is_string(client:execute("GET", name))
        assert.is_true(coroutine.close(routine))
        assert.is_nil(client:execute("GET", name))
    end)

    it("is renewed until its last release", function()
        local lock = client:rlock(name, {ttl = TTL})
        local _ <close> = assert(lock:hold())
        do
            local _ <close> = assert(lock:hold())
        end
        assert.equal(lock:token(), outlive())
        assert.is_true(lock:owned())
    end)

    it("is held no longer than max_hold, however often it is held within", function()
        local lock = client:rlock(name, {ttl = TTL, max_hold = 0.05})
        local ok = pcall(function()
            local _ <close> = assert(lock:hold())
            local deadline = os.time() + LIMIT
            while os.time() < deadline do
                local _ <close> = assert(lock:hold())
                sleep(0.01)
            end
        end)
        assert.is_false(ok)
    end)

    it("that is lost is so on each level", function()
        local lock = client:rlock(name, {ttl = TTL, renew = true})
        assert(lock:acquire() and lock:acquire())
        lose(lock)
        for _, method in ipairs {"acquire", "release", "release"} do
            local _, message, code = lock[method](lock)
            assert.equal("NOT_OWNER", code)
            assert.matches(name .. ".*lost", message)
        end
        local _ <close> = assert(lock:hold())
        assert.is_true(lock:owned())
    end)

    it("that is lost never replaces an error under way", function()
        local lock, failure = client:rlock(name, {ttl = TTL}), {}
        local ok, err = pcall(function()
            local _ <close> = assert(lock:hold())
            local _ <close> = assert(lock:hold())
            lose(lock)
            error(failure)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
    end)

    it("released too often within a block is an error at its end", function()
        local lock = client:rlock(name)
        local ok, err = pcall(function()
            local _ <close> = assert(lock:hold())
            assert(lock:release())
        end)
        assert.is_false(ok)
        assert.matches("not held by this owner", err)
    end)

    it("guards a transaction of its coroutine", function()
        local lock = client:rlock(name)
        local function write()
            return client:update(name .. ":value", function() return "new" end, {guard = lock})
        end
        do
            local _ <close> = assert(lock:hold())
            local _ <close> = assert(lock:hold())
            assert.equal("new", write())
            assert.equal("NOT_OWNER", select(3, elsewhere(write)))
        end
        assert.equal("NOT_OWNER", select(3, write()))
    end)

    it("guards nothing for who has released it, though another has it since", function()
        local lock = client:rlock(name, {ttl = 60})
        assert(lock:acquire())
        local _, _, code = client:update(name .. ":value", function()
            assert(lock:release())
            elsewhere(function() assert(lock:acquire()) end)
            return "never written"
        end, {guard = lock})
        assert.equal("NOT_OWNER", code)
        assert.is_nil(client:execute("GET", name .. ":value"))
    end)

    it("may be released and freed while it guards", function()
        local lock = client:rlock(name)
        assert(lock:acquire())
        local _, _, code = client:update(name .. ":value", function()
            assert(lock:release())
            getmetatable(lock).__gc(lock)
            return "never written"
        end, {guard = lock})
        assert.equal("NOT_OWNER", code)
        assert.is_nil(client:execute("GET", name .. ":value"))
    end)

    it("is not acquired by an op", function()
        local lock = client:rlock(name)
        for _, method in ipairs {"acquire_start", "release_start"} do
            local ok, err = pcall(lock[method], lock)
            assert.is_false(ok)
            assert.matches("without ops", err)
        end
        local _ <close> = assert(lock:hold())
        assert.is_true(lock:extend_start():wait())
    end)

    it("has clones that count for themselves", function()
        local lock = client:rlock(name, {wait = 0})
        local _ <close> = assert(lock:hold())
        local clone = lock:clone()
        assert.equal("BUSY", select(3, clone:acquire()))
        assert.matches("^sneck.rlock", tostring(clone))
    end)
end)
