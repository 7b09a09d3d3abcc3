-- Coroutines that are closed, or just left, at any time.
local async = require "sneck.async"
local loops = require "loops"
local support = require "support"

local CANCELS = 10000

local blocking = support.connect()

for _, loop_name in ipairs(loops.names) do
    describe("a closed coroutine of the loop " .. loop_name, function()
        local own, client, client_name, name

        before_each(function()
            own = loops.make(loop_name)
            name = support.name()
            client_name = name:gsub("%W", "_")
            client = assert(async.connect(own.loop, support.url,
                support.patient {client_name = client_name}))
        end)

        local function take_and_wait()
            support.take(blocking, name)
            local thread = own.spawn(function()
                client:lock(name, {ttl = 60}):acquire()
                error("not reached")
            end)
            own.spawn(function()
                repeat until #assert(client:waiters(name)) > 0
                assert(coroutine.close(thread))
            end)
            own.run()
        end

        it("leaves no place in the queue", function()
            take_and_wait()
            assert.equal("another", blocking:execute("GET", name))
            assert.same({}, blocking:waiters(name))
        end)

        local function close_holder(hold)
            local holder = own.spawn(hold)
            own.spawn(function()
                repeat until client:lock(name):locked()
                assert(coroutine.close(holder))
            end)
            own.run()
            assert.is_false(loops.is_left(name))
        end

        it("releases what it holds", function()
            close_holder(function()
                local _ <close> = assert(client:hold(name, {ttl = 60}))
                own.stay()
            end)
        end)

        it("releases what it holds around a function", function()
            close_holder(function()
                client:with_lock(name, {ttl = 60}, own.stay)
            end)
        end)

        it("releases what it holds more than once", function()
            local rlock = client:rlock(name, {ttl = 60})
            close_holder(function()
                local _ <close> = assert(rlock:hold())
                local _ <close> = assert(rlock:hold())
                own.stay()
            end)
            own.call(function() assert(rlock:acquire(0) and rlock:release()) end)
        end)

        -- Both replies come in one turn, in which the closer may be the first to go on.
        local function close_when_granted(lock, closer_first)
            local taker, granted, taken = nil, false, client:stats().acquisitions
            local function close()
                client:execute("PING")
                granted = client:stats().acquisitions > taken and
                    coroutine.status(taker) == "suspended"
                assert(coroutine.close(taker))
            end
            local function take()
                assert(lock:acquire())
                lock:release()
            end
            if closer_first then
                own.spawn(close)
            end
            taker = own.spawn(take)
            if not closer_first then
                own.spawn(close)
            end
            own.run()
            assert.is_false(loops.is_left(name))
            assert.is_nil(lock:token())
            return granted
        end

        for _, kind in ipairs {"lock", "rlock"} do
            it("has its " .. kind .. " released when it was granted in that moment", function()
                local lock, seen = client[kind](client, name, {ttl = 60}), false
                for attempt = 1, 1000 do
                    seen = close_when_granted(lock, attempt % 2 == 0) or seen
                    if seen and attempt > 10 then
                        break
                    end
                end
                assert.is_true(seen)
            end)
        end

        it("goes on to release what it was releasing", function()
            local lock, releasing = client:rlock(name, {ttl = 60}), false
            local thread = own.spawn(function()
                assert(lock:acquire())
                releasing = true
                lock:release()
            end)
            own.spawn(function()
                while not releasing do
                    client:execute("PING")
                end
                assert(coroutine.close(thread))
                support.collect()
            end)
            own.run()
            assert.is_false(loops.is_left(name))
        end)

        it("leaves its loop to end when its reply had come", function()
            for attempt = 1, 20 do
                local asks
                local function close()
                    client:execute("PING")
                    assert(coroutine.close(asks))
                end
                local function ask() client:execute("PING") end
                if attempt % 2 == 0 then
                    own.spawn(close)
                end
                asks = own.spawn(ask)
                if attempt % 2 == 1 then
                    own.spawn(close)
                end
                own.run()
            end
        end)

        it("leaves its loop to end when nothing of it has left", function()
            own.call(client.execute, client, "PING")
            local waits
            own.spawn(function() waits = own.spawn(client.execute, client, "PING") end)
            own.spawn(function()
                if waits then
                    assert(coroutine.close(waits))
                end
            end)
            own.run()
        end)

        it("leaves nothing, thousands of times at random", function()
            local victims, closed, rlock = {}, 0, client:rlock(name .. ":again", {ttl = 60})
            local function victim()
                for _ = 1, 3 do
                    local lock <close> = assert(client:hold(name, {ttl = 60}))
                    local _ <close> = assert(rlock:hold())
                    local _ <close> = assert(rlock:hold())
                    client:execute("PING")
                    client:transaction({name .. ":key"}, function(tx)
                        tx:get(name .. ":key")
                        tx:queue("INCR", name .. ":key")
                    end)
                    if not lock then
                        break
                    end
                end
            end
            own.spawn(function()
                while closed < CANCELS do
                    for _ = 1, 20 do
                        victims[#victims + 1] = own.spawn(victim)
                    end
                    for _ = 1, math.random(0, 3) do
                        client:execute("PING")
                    end
                    while #victims > math.random(0, 20) do
                        local thread = table.remove(victims, math.random(#victims))
                        if coroutine.status(thread) == "suspended" then
                            assert(coroutine.close(thread))
                            closed = closed + 1
                        end
                    end
                end
            end)
            own.run()
            assert.is_false(loops.is_left(name))
            assert.is_false(loops.is_left(name .. ":again"))
            assert.is_true(loops.count_connections(client_name) <= 4)
            own.call(function()
                assert(rlock:acquire(0) and rlock:release())
                assert.equal("1", client:update(name, function() return 1 end))
                local lock <close> = assert(client:hold(name .. ":free", {wait = 0}))
                return lock
            end)
        end)
    end)
end

describe("a coroutine that nobody has any more", function()
    it("passes its place on, and leaves its lock to its ttl", function()
        local luv, client, name = loops.start("luv")
        luv.spawn(function()
            local lock <close> = assert(client:hold(name, {ttl = 60}))
            client:transaction({name .. ":key"}, function(tx)
                tx:get(name .. ":key")
                coroutine.yield(lock)
            end)
        end)
        luv.run()
        support.collect()
        assert.equal("1", luv.call(client.update, client, name .. ":key", function() return 1 end))
        assert.is_true(blocking:lock(name):locked())
    end)
end)
