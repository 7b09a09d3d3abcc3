-- A re-entrant lock counts for its coroutine.
local leases = require "leases"
local support = require "support"

local LONG, SHORT = leases.LONG, leases.SHORT
local lose, states, wait_for_renewal = leases.lose, leases.states, leases.wait_for_renewal

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
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
        local lock = client:rlock(name, {ttl = LONG})
        local _ <close> = assert(lock:hold())
        do
            local _ <close> = assert(lock:hold())
        end
        assert.equal(lock:token(), wait_for_renewal(lock))
        assert.is_true(lock:owned())
    end)

    it("is held no longer than max_hold, however often it is held within", function()
        local lock = client:rlock(name, {ttl = SHORT, max_hold = 0.05})
        local ok, err = pcall(function()
            local _ <close> = assert(lock:hold())
            leases.wait_until(function()
                local _ <close> = assert(lock:hold())
            end)
        end)
        assert.is_false(ok)
        assert.matches(name .. ".*lost", err)
    end)

    it("that is lost is so on each level", function()
        local lock = client:rlock(name, {ttl = LONG, renew = true})
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
        local lock, failure = client:rlock(name, {ttl = LONG}), {}
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
