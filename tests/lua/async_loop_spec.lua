-- The loop for plain coroutines.
local async = require "sneck.async"
local core = require "sneck.core"
local support = require "support"

describe("the plain loop", function()
    local loop, client, name

    before_each(function()
        loop, name = async.loop(), support.name()
        client = assert(async.connect(loop, support.url, support.patient()))
    end)

    it("throws what a coroutine threw, and goes on", function()
        local thrown, reached = {}, 0
        loop:spawn(function()
            local lock <close> = assert(client:hold(name, {ttl = 60}))
            error(thrown, lock and 0)
        end)
        loop:spawn(function()
            repeat until client:lock(name):acquire()
            reached = reached + 1
        end)
        local ok, err = pcall(loop.run, loop)
        assert.is_false(ok)
        assert.equal(thrown, err)
        loop:run()
        assert.equal(1, reached)
    end)

    it("lets a coroutine yield and sleep", function()
        local seen = {}
        loop:spawn(function()
            loop:sleep(0.05)
            seen[#seen + 1] = "slept"
        end)
        loop:spawn(function(...)
            coroutine.yield()
            seen[#seen + 1] = table.concat({...}, " ")
        end, "with", "arguments")
        loop:run()
        assert.same({"with arguments", "slept"}, seen)
    end)

    it("lets a coroutine be closed while it sleeps, and ends then", function()
        local sleeper = loop:spawn(function()
            loop:sleep(1000000)
            error("not reached")
        end)
        loop:spawn(function() assert(coroutine.close(sleeper)) end)
        loop:run()
    end)

    it("lets one sleep for years", function()
        local poll, longest = core.poll, nil
        local sleeper = loop:spawn(function()
            loop:sleep(4e7)
            error("not reached")
        end)
        finally(function() core.poll = poll end)
        function core.poll(entries, timeout) -- all others have ended by then
            longest = timeout
            poll(entries, 0)
            poll({}, longest / 1e9)
            assert(coroutine.close(sleeper))
        end
        loop:run()
        assert.is_true(longest > 1)
        poll({{fd = 1, events = "w"}}, longest)
    end)

    it("refuses a coroutine within one of its own, which could not wait", function()
        loop:spawn(function()
            coroutine.wrap(function() client:execute("PING") end)()
        end)
        assert.error_matches(function() loop:run() end, "not one of the client's loop")
        loop:spawn(function()
            client:transaction({name}, function(tx)
                coroutine.wrap(function() tx:get(name) end)()
            end)
        end)
        assert.error_matches(function() loop:run() end, "not one of the client's loop")
        loop:run()
    end)

    it("does not run within itself", function()
        loop:spawn(function() loop:run() end)
        assert.error_matches(function() loop:run() end, "runs already")
        assert.error_matches(function() loop:spawn(1) end, "needs a function")
        assert.error_matches(function() loop:sleep(1) end, "inside of a coroutine")
    end)

    it("ends at once with nothing to do", function()
        loop:run()
    end)
end)
