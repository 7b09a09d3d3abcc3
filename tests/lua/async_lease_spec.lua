-- Leases and re-entrant locks in coroutines: what differs from the calls that block, which
-- lease_spec.lua is about.
local async = require "sneck.async"
local loops = require "loops"
local support = require "support"

local TTL = 0.4
local LIMIT = 30 -- seconds; for what takes less than one

local blocking = support.connect()

for _, loop_name in ipairs(loops.names) do
    describe("in coroutines of the loop " .. loop_name .. ",", function()
        local own, client, name

        before_each(function()
            own = loops.make(loop_name)
            name = support.name()
            client = assert(async.connect(own.loop, support.url))
        end)

        -- Waits until a lease would be long over; returns the token that the server has then.
        local function outlive()
            own.sleep(2 * TTL)
            return blocking:execute("GET", name)
        end

        -- Takes the lock away, and waits until its renewal has found that.
        local function lose(lock)
            local deadline = os.time() + LIMIT
            assert(client:force_release(name))
            while not lock:lost() do
                assert(os.time() < deadline, "it did not happen in time")
                own.sleep(0.01)
            end
        end

        describe("a lock object that several coroutines share", function()
            -- Another coroutine holds it, after the key was deleted, until it is told to go on.
            local function win(lock)
                local mine, other = lock:token(), {}
                own.spawn(function()
                    local held <close> = assert(lock:hold())
                    other.token = held:token()
                    repeat own.sleep(0.001) until other.goes_on
                end)
                blocking:execute("DEL", name)
                repeat own.sleep(0.001) until other.token
                assert.not_equal(mine, other.token)
                return other
            end

            it("is not released by a block that has lost it", function()
                own.call(function()
                    local lock, other = client:lock(name, {ttl = 60}), nil
                    support.refused("lock .- acquired anew", function()
                        local held <close> = assert(lock:hold())
                        other = win(held)
                    end)
                    assert.equal(other.token, blocking:execute("GET", name))
                    other.goes_on = true
                    repeat own.sleep(0.001) until not lock:owned()
                end)
                assert.is_nil(blocking:execute("GET", name))
            end)

            it("is released by the block that has acquired it again", function()
                own.call(function()
                    local lock = client:lock(name, {ttl = 60})
                    do
                        local held <close> = assert(lock:hold())
                        assert(held:release())
                        assert(held:acquire())
                    end
                    assert.is_nil(blocking:execute("GET", name))
                    support.take(blocking, name)
                    assert.is_nil(lock:hold(0))
                    blocking:execute("DEL", name)
                    do
                        local held <close> = lock
                        assert(held:acquire())
                    end
                    assert.is_nil(blocking:execute("GET", name))
                end)
            end)
        end)

        describe("a lease", function()
            it("lasts as long as a block, a function, or keep_alive() says", function()
                own.call(function()
                    do
                        local lock <close> = assert(client:hold(name, {ttl = TTL}))
                        assert.equal(lock:token(), outlive())
                        assert.same({true, false, "held"},
                            {lock:owned(), lock:lost(), lock:lease()})
                    end
                    assert.is_nil(blocking:execute("GET", name))
                    assert.is_true(client:with_lock(name, {ttl = TTL}, function(lock)
                        return outlive() == lock:token()
                    end))
                    local lock = client:lock(name, {ttl = TTL})
                    assert(lock:acquire())
                    assert.is_true(lock:keep_alive())
                    assert.equal(lock:token(), outlive())
                    assert.is_true(lock:keep_alive(false))
                    assert.is_nil(outlive())
                    assert.is_true(lock:lost())
                end)
            end)

            it("is not renewed for an acquire, nor where told so", function()
                own.call(function()
                    local lock = client:lock(name, {ttl = TTL})
                    assert(lock:acquire())
                    assert.is_nil(outlive())
                    assert.equal("NOT_OWNER", select(3, lock:keep_alive()))
                    local failed, err = pcall(client.with_lock, client, name,
                        {ttl = TTL, renew = false}, outlive)
                    assert.is_false(failed)
                    assert.matches("lost before its release", err)
                end)
            end)

            it("of an adopted lock is confirmed, then renewed", function()
                own.call(function()
                    local first = client:lock(name, {ttl = TTL})
                    assert(first:acquire())
                    do
                        local adopted = client:adopt(name, first:token(), {ttl = TTL})
                        local lock <close> = assert(adopted:hold())
                        assert.equal(first:token(), outlive())
                        assert.is_true(lock:owned())
                    end
                    assert.is_nil(blocking:execute("GET", name))
                    local stranger = client:adopt(name, "another")
                    assert.equal("uncertain", stranger:lease())
                    assert.equal("NOT_OWNER", select(3, stranger:hold()))
                end)
            end)

            it("that is lost is known, and thrown behind the block, also once released", function()
                own.call(function()
                    support.refused("lock .- lost before its release", function()
                        local lock <close> = assert(client:hold(name, {ttl = TTL}))
                        lose(lock)
                    end)
                    assert.is_false((pcall(client.with_lock, client, name, {ttl = TTL},
                        function(lock)
                            lose(lock)
                            assert.equal("NOT_OWNER", select(3, lock:release()))
                        end)))
                end)
                assert.equal(2, client:stats().losses)
            end)
        end)

        it("hold() waits as it is told, and gives its lock", function()
            own.call(function()
                local lock = client:lock(name, {ttl = 60, fence = true})
                local held <close> = assert(lock:hold())
                assert.equal(lock, held)
                assert.equal("integer", math.type(held:fence()))
                local clone = lock:clone()
                assert.same({name, 60, false}, {clone:name(), clone:ttl(), clone:owned()})
                assert.equal("BUSY", select(3, clone:hold(0)))
                assert.matches("^sneck.async.lock", tostring(clone))
            end)
        end)

        it("misuse of a lease is an error", function()
            local lock = client:lock(name)
            own.call(function()
                support.refused("wait must be", function() lock:hold(-1) end)
                support.refused("on must be", function() lock:keep_alive(1) end)
                support.refused("renew must be", function() client:rlock(name, {renew = 1}) end)
                support.refused("unknown option tll", function() client:rlock(name, {tll = 1}) end)
            end)
            support.refused("call this inside of a coroutine", function() lock:hold() end)
        end)

        describe("a re-entrant lock", function()
            it("counts for its coroutine, and the others wait for it in turn", function()
                local rlock, order, started = client:rlock(name, {ttl = 60}), {}, 0
                local function wait()
                    started = started + 1
                    local place = started
                    local held <close> = assert(rlock:hold())
                    order[#order + 1] = held:owned() and place
                end
                own.spawn(function()
                    local _ <close> = assert(rlock:hold())
                    for _ = 1, 3 do
                        own.spawn(wait)
                    end
                    repeat until #assert(client:waiters(name)) == 3
                    do
                        local inner <close> = assert(rlock:hold())
                        assert(inner:acquire(0))
                        assert(inner:extend())
                        assert(inner:release())
                    end
                    assert.same({true, {}}, {rlock:owned(), order})
                    assert.equal(rlock:token(), blocking:execute("GET", name))
                    assert.matches("^sneck.async.rlock .* %(owned%)$", tostring(rlock))
                end)
                own.run()
                assert.same({1, 2, 3}, order)
                assert.is_false(loops.is_left(name))
                assert.equal(4, client:stats().acquisitions)
            end)

            it("is nobody else's", function()
                local rlock = client:rlock(name, {ttl = 60, wait = 0})
                own.spawn(function()
                    assert(rlock:acquire())
                    own.spawn(function()
                        assert.is_false(rlock:owned())
                        assert.equal("BUSY", select(3, rlock:acquire()))
                        assert.equal("NOT_OWNER", select(3, rlock:release()))
                        assert.equal("NOT_OWNER", select(3, rlock:extend()))
                        assert.equal("NOT_OWNER", select(3, rlock:keep_alive()))
                        assert.equal("NOT_OWNER", select(3, client:update(name .. ":k",
                            support.add_one, {guard = rlock})))
                        assert.equal("BUSY", select(3, rlock:clone():acquire()))
                    end)
                    own.sleep(0.05)
                    assert.equal("1", client:update(name .. ":k", support.add_one, {guard = rlock}))
                    assert.is_true(rlock:release())
                    assert.equal("NOT_OWNER", select(3, rlock:release()))
                end)
                own.run()
                assert.is_false(loops.is_left(name))
            end)

            it("is renewed until its last release, and lost on each level", function()
                local rlock = client:rlock(name, {ttl = TTL})
                own.call(function()
                    do
                        local _ <close> = assert(rlock:hold())
                        do
                            local _ <close> = assert(rlock:hold())
                        end
                        assert.equal(rlock:token(), outlive())
                    end
                    assert(rlock:hold() and rlock:acquire())
                    lose(rlock)
                    for _, method in ipairs {"acquire", "release", "release"} do
                        local _, message, code = rlock[method](rlock)
                        assert.equal("NOT_OWNER", code)
                        assert.matches("lost", message)
                    end
                    local _ <close> = assert(rlock:hold())
                    assert.is_true(rlock:owned())
                end)
            end)

            it("released too often within a block is an error at its end", function()
                own.call(function()
                    support.refused("lock .- not held by this owner", function()
                        local held <close> = assert(client:rlock(name):hold())
                        assert(held:release())
                    end)
                end)
            end)

            it("has its acquire ended by a client that is closed", function()
                support.take(blocking, name)
                local rlock, code = client:rlock(name, {ttl = 60}), nil
                own.spawn(function() code = select(3, rlock:acquire()) end)
                own.spawn(function()
                    repeat until #assert(client:waiters(name)) == 1
                    client:close()
                end)
                own.run()
                assert.equal("INTERRUPTED", code)
                assert.same({}, blocking:waiters(name))
            end)
        end)
    end)
end

describe("a re-entrant lock that waits when all is dropped", function()
    it("is freed", function()
        local name = support.name()
        support.take(blocking, name)
        do
            local loop = async.loop()
            local rlock = assert(async.connect(loop, support.url)):rlock(name)
            loop:spawn(rlock.acquire, rlock)
            loop:spawn(error, "stop")
            assert.has_error(function() loop:run() end)
        end
        support.collect()
        assert.is_true(blocking:lock(name):locked())
    end)
end)
