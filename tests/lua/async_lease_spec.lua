-- Leases in coroutines: what differs from the calls that block, which lease_spec.lua is about.
local leases = require "leases"
local loops = require "loops"
local support = require "support"

local LONG, SHORT = leases.LONG, leases.SHORT

local blocking = support.connect()

for _, loop_name in ipairs(loops.names) do
    describe("in coroutines of the loop " .. loop_name .. ",", function()
        local own, client, name

        before_each(function()
            own, client, name = loops.start(loop_name)
        end)

        local function wait_for_renewal(lock)
            return leases.wait_for_renewal(lock, own.sleep)
        end

        local function wait_for_end()
            leases.wait_for_end(name, own.sleep)
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
                        local lock <close> = assert(client:hold(name, {ttl = LONG}))
                        assert.equal(lock:token(), wait_for_renewal(lock))
                        assert.same({true, false, "held"},
                            {lock:owned(), lock:lost(), lock:lease()})
                    end
                    assert.is_nil(blocking:execute("GET", name))
                    assert.is_true(client:with_lock(name, {ttl = LONG}, function(lock)
                        return wait_for_renewal(lock) == lock:token()
                    end))
                    local lock = client:lock(name, {ttl = LONG})
                    assert(lock:acquire())
                    assert.is_true(lock:keep_alive())
                    assert.equal(lock:token(), wait_for_renewal(lock))
                    assert.is_true(lock:keep_alive(false))
                    assert(lock:extend(SHORT))
                    wait_for_end()
                    assert.is_true(lock:lost())
                end)
            end)

            it("is not renewed for an acquire, nor where told so", function()
                own.call(function()
                    local lock = client:lock(name, {ttl = SHORT})
                    assert(lock:acquire())
                    wait_for_end()
                    assert.equal("NOT_OWNER", select(3, lock:keep_alive()))
                    local failed, err = pcall(client.with_lock, client, name,
                        {ttl = SHORT, renew = false}, wait_for_end)
                    assert.is_false(failed)
                    assert.matches("lost before its release", err)
                end)
            end)

            it("of an adopted lock is confirmed, then renewed", function()
                own.call(function()
                    local first = client:lock(name, {ttl = LONG})
                    assert(first:acquire())
                    do
                        local adopted = client:adopt(name, first:token(), {ttl = LONG})
                        local lock <close> = assert(adopted:hold())
                        assert.equal(first:token(), wait_for_renewal(lock))
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
                        local lock <close> = assert(client:hold(name, {ttl = LONG}))
                        leases.lose(lock, own.sleep)
                    end)
                    support.refused("lock .- lost", function()
                        client:with_lock(name, {ttl = LONG}, function(lock)
                            leases.lose(lock, own.sleep)
                            assert.equal("NOT_OWNER", select(3, lock:release()))
                        end)
                    end)
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
    end)
end
