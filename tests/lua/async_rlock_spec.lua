-- Re-entrant locks in coroutines: what differs from the calls that block, which rlock_spec.lua
-- is about.
local async = require "sneck.async"
local leases = require "leases"
local loops = require "loops"
local support = require "support"

local blocking = support.connect()

for _, loop_name in ipairs(loops.names) do
    describe("in coroutines of the loop " .. loop_name .. ",", function()
        local own, client, name

        before_each(function()
            own, client, name = loops.start(loop_name)
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
                local rlock, refused = client:rlock(name, {ttl = 60, wait = 0}), false
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
                        refused = true
                    end)
                    leases.wait_until(function() return refused end, own.sleep)
                    assert.equal("1", client:update(name .. ":k", support.add_one, {guard = rlock}))
                    assert.is_true(rlock:release())
                    assert.equal("NOT_OWNER", select(3, rlock:release()))
                end)
                own.run()
                assert.is_false(loops.is_left(name))
            end)

            it("is renewed until its last release, and lost on each level", function()
                local rlock = client:rlock(name, {ttl = leases.LONG})
                own.call(function()
                    do
                        local _ <close> = assert(rlock:hold())
                        do
                            local _ <close> = assert(rlock:hold())
                        end
                        assert.equal(rlock:token(), leases.wait_for_renewal(rlock, own.sleep))
                    end
                    assert(rlock:hold() and rlock:acquire())
                    leases.lose(rlock, own.sleep)
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
