-- What spans an acquire and its release: <close>, hold, with_lock; and the collector.
local support = require "support"

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

describe("a <close> variable", function()
    it("releases the lock at the end of its block", function()
        do
            local lock <close> = assert(client:hold(name))
            assert.is_true(lock:owned())
            assert.equal(lock:token(), client:execute("GET", name))
        end
        assert.is_nil(client:execute("GET", name))
    end)

    it("releases the lock when the block throws, and lets the error through", function()
        local failure = {}
        local ok, err = pcall(function()
            local _ <close> = assert(client:hold(name))
            error(failure)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
        assert.is_nil(client:execute("GET", name))
    end)

    it("throws at a clean end when the lock was lost", function()
        local ok, err = pcall(function()
            local _ <close> = assert(client:hold(name))
            support.take(client, name)
        end)
        assert.is_false(ok)
        assert.matches("^.-blocks_spec.lua:%d+: lock .- lost before its release", err)
        assert.equal("another", client:execute("GET", name))
    end)

    it("never replaces an error under way by the loss", function()
        local failure = {}
        local ok, err = pcall(function()
            local _ <close> = assert(client:hold(name))
            support.take(client, name)
            error(failure)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
    end)

    it("is content with a lock that was released before", function()
        do
            local lock <close> = assert(client:hold(name))
            assert(lock:release())
        end
    end)

    it("releases an adopted lock", function()
        local token = support.take(client, name)
        do
            local lock <close> = client:adopt(name, token)
            assert(lock:extend())
        end
        assert.is_nil(client:execute("GET", name))
    end)

    it("releases the lock when its coroutine is closed", function()
        local routine = coroutine.create(function()
            local _ <close> = assert(client:hold(name))
            coroutine.yield()
        end)
        assert(coroutine.resume(routine))
        assert.is_string(client:execute("GET", name))
        assert.is_true(coroutine.close(routine))
        assert.is_nil(client:execute("GET", name))
    end)

    it("closes a client", function()
        local kept
        do
            local other <close> = support.connect()
            kept = other:lock(name)
        end
        assert.equal("INVALID", select(3, kept:acquire()))
    end)
end)

describe("hold", function()
    it("gives nil, message and code when somebody else has the lock", function()
        support.take(client, name)
        local lock, message, code = client:hold(name, {wait = 0})
        assert.is_nil(lock)
        assert.matches("held by a client of another kind", message)
        assert.equal("BUSY", code)
    end)
end)

describe("with_lock", function()
    it("holds the lock while the body runs, and returns what the body returns", function()
        local results = table.pack(client:with_lock(name, {ttl = 60}, function(lock)
            assert.equal(lock:token(), client:execute("GET", name))
            return nil, "two", nil
        end))
        assert.same({nil, "two", nil, n = 3}, results)
        assert.is_nil(client:execute("GET", name))
    end)

    it("does not call the body when the lock is not acquired", function()
        support.take(client, name)
        local called = false
        local result, message, code = client:with_lock(name, {wait = 0}, function()
            called = true
        end)
        assert.is_nil(result)
        assert.is_string(message)
        assert.equal("BUSY", code)
        assert.is_false(called)
    end)

    it("tells the server's word when the key is not a lock", function()
        client:execute("LPUSH", name, "x")
        local _, _, code, word = client:with_lock(name, nil, function() end)
        assert.equal("SERVER", code)
        assert.equal("WRONGTYPE", word)
    end)

    it("throws the body's error unchanged, also when the lock was lost", function()
        local failure = {}
        local ok, err = pcall(client.with_lock, client, name, nil, function()
            support.take(client, name)
            error(failure)
        end)
        assert.is_false(ok)
        assert.equal(failure, err)
    end)

    it("releases the lock before it throws the body's error", function()
        assert.has_error(function()
            client:with_lock(name, nil, function()
                error("body", 0)
            end)
        end, "body")
        assert.is_nil(client:execute("GET", name))
    end)

    it("throws when the lock was lost behind a clean body", function()
        local ok, err = pcall(client.with_lock, client, name, nil, function()
            support.take(client, name)
            return "a result that may be wrong"
        end)
        assert.is_false(ok)
        assert.matches("lost before its release", err)
    end)

    it("lets the body release early", function()
        assert.equal("early", client:with_lock(name, nil, function(lock)
            assert(lock:release())
            return "early"
        end))
    end)

    it("lets the body yield", function()
        local resume = coroutine.wrap(function()
            return client:with_lock(name, nil, function()
                return coroutine.yield("inside")
            end)
        end)
        assert.equal("inside", resume())
        assert.is_string(client:execute("GET", name))
        assert.equal("back", resume("back"))
        assert.is_nil(client:execute("GET", name))
    end)
end)

describe("a lock object that several coroutines share", function()
    local lock

    before_each(function() lock = client:lock(name, {ttl = 60}) end)

    -- A coroutine that holds it, and has got it after the key was deleted.
    local function win()
        client:execute("DEL", name)
        local other = coroutine.wrap(function()
            local _ <close> = assert(lock:hold())
            coroutine.yield()
        end)
        other()
        return other
    end

    it("is not released by a block that has lost it", function()
        local other
        support.refused("lock .- acquired anew", function()
            local _ <close> = assert(lock:hold())
            other = win()
        end)
        assert.equal(lock:token(), client:execute("GET", name))
        assert.is_true(lock:owned())
        other()
        assert.is_nil(client:execute("GET", name))
    end)

    it("is not released by a coroutine that is closed", function()
        local loser = coroutine.create(function()
            local _ <close> = assert(lock:hold())
            coroutine.yield()
        end)
        assert(coroutine.resume(loser))
        win()
        assert.is_false(coroutine.close(loser))
        assert.equal(lock:token(), client:execute("GET", name))
    end)

    it("is released by the block that has acquired it again", function()
        do
            local _ <close> = assert(lock:hold())
            assert(lock:release())
            assert(lock:acquire())
        end
        assert.is_nil(client:execute("GET", name))
    end)

    it("was released within the block, and is another's since", function()
        local other
        do
            local _ <close> = assert(lock:hold())
            assert(lock:release())
            other = win()
        end
        assert.equal(lock:token(), client:execute("GET", name))
        other()
    end)

    it("is released by a block without hold(), where another could not begin", function()
        support.take(client, name)
        assert.is_nil(lock:hold(0))
        client:execute("DEL", name)
        do
            local held <close> = lock
            assert(held:acquire())
        end
        assert.is_nil(client:execute("GET", name))
    end)
end)

describe("the garbage collector", function()
    it("never releases a lock", function()
        local lock = client:lock(name, {ttl = 60})
        assert(lock:acquire())
        local token = lock:token()
        lock = nil -- luacheck: ignore
        support.collect()
        assert.equal(token, client:execute("GET", name))
    end)

    it("leaves a client open that a lock needs", function()
        local lock = support.connect():lock(name)
        support.collect()
        assert.is_true(lock:acquire())
        assert.is_true(lock:release())
    end)

    it("cancels an op that nobody has any more", function()
        support.take(client, name)
        client:lock(name):acquire_start():step()
        support.collect()
        assert.equal("another", client:execute("GET", name))
    end)
end)
