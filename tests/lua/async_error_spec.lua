-- Coroutines that throw, by the means of the loops of cqueues and luv. The plain loop's are
-- in async_loop_spec.lua.
local adapter = require "sneck.async.cqueues"
local async = require "sneck.async"
local cqueues = require "cqueues"
local luv_adapter = require "sneck.async.luv"
local leases = require "leases"
local loops = require "loops"
local support = require "support"

describe("a coroutine of a cqueues controller", function()
    local controller, client, name

    before_each(function()
        controller, name = cqueues.new(), support.name()
        client = assert(async.connect(adapter, support.url, support.patient()))
    end)

    it("of wrap() that throws releases what its blocks hold", function()
        local thrown, reached = {}, false
        adapter.wrap(controller, function(...)
            assert.same({1, nil, 3, n = 3}, table.pack(...))
            local _ <close> = assert(client:hold(name, {ttl = 60}))
            error(thrown)
        end, 1, nil, 3)
        adapter.wrap(controller, function()
            local lock <close> = assert(client:hold(name, {ttl = 60}))
            reached = lock:owned()
        end)
        local ok, err = controller:loop()
        assert.is_false(ok)
        assert.equal(thrown, err)
        assert(controller:loop())
        assert.is_true(reached)
        assert.is_false(loops.is_left(name))
    end)

    it("of wrap() may throw before it waits, and where it cannot", function()
        adapter.wrap(controller, function()
            local lock = assert(client:hold(name, {ttl = 60}))
            string.gsub("x", ".", function()
                local _ <close> = lock
                error("thrown", 0)
            end)
        end)
        adapter.wrap(controller, error, "at once", 0)
        local errors = {}
        for err in controller:errors() do
            errors[#errors + 1] = err
        end
        table.sort(errors)
        assert.same({"at once", "thrown"}, errors)
        assert.is_false(loops.is_left(name))
        support.refused("wrap%(%) needs a function", function() adapter.wrap(controller, 1) end)
    end)

    it("of the controller's own wrap() keeps its lock until it is closed", function()
        local kept
        controller:wrap(function()
            local lock <close> = assert(client:hold(name, {ttl = leases.LONG}))
            kept = lock
            error("thrown", 0)
        end)
        local ok, err, _, thread = controller:loop()
        assert.same({false, "thrown"}, {ok, err})
        adapter.wrap(controller, leases.wait_for_renewal, kept, cqueues.sleep)
        assert(controller:loop())
        assert.is_true(kept:owned())
        assert.same({false, "thrown"}, {coroutine.close(thread)})
        assert(controller:loop())
        assert.is_false(loops.is_left(name))
    end)
end)

describe("the loop of luv", function()
    local waiting, reached, watch

    local function wait(thrown)
        local thread = coroutine.create(function()
            local ticket = luv_adapter.ticket()
            waiting[#waiting + 1] = ticket
            luv_adapter.sleep_on(ticket)
            reached = reached + 1
            if thrown then
                error(thrown, 0)
            end
        end)
        assert(coroutine.resume(thread))
    end

    -- Has all of them resumed in one callback, which throws itself, too, if it has a text.
    local function callback(thrown)
        local source = {
            generation = function() return 1 end,
            fds = function() return {} end,
            timeout = function() return nil end,
        }
        watch = luv_adapter.watch(luv_adapter, source, function()
            for _, ticket in ipairs(waiting) do
                luv_adapter.wake(ticket)
            end
            waiting = {}
            if thrown then
                error(thrown, 0)
            end
        end)
        return {pcall(watch.step)}
    end

    before_each(function()
        waiting, reached = {}, 0
    end)

    after_each(function()
        watch.stop()
        local luv, client = loops.start("luv")
        assert.equal("PONG", luv.call(client.execute, client, "PING"))
    end)

    it("throws an error as it is", function()
        local thrown = {}
        wait(thrown)
        wait()
        local ok, err = table.unpack(callback())
        assert.is_false(ok)
        assert.equal(thrown, err)
        assert.equal(2, reached)
    end)

    it("throws the texts of several errors of one turn", function()
        wait("one")
        wait()
        wait("another")
        assert.same({false, "one\nanother"}, callback())
        assert.equal(3, reached)
    end)

    it("resumes coroutines also when what it watches throws", function()
        wait()
        assert.same({false, "thrown"}, callback("thrown"))
        assert.equal(1, reached)
    end)
end)
