-- Coroutines that throw, by the means of the loops of cqueues and luv. The plain loop's are
-- in async_loop_spec.lua.
local adapter = require "sneck.async.cqueues"
local async = require "sneck.async"
local cqueues = require "cqueues"
local luv_adapter = require "sneck.async.luv"
local loops = require "loops"
local support = require "support"

local TTL = 0.4

local blocking = support.connect()

describe("a coroutine of a cqueues controller", function()
    local controller, client, name

    before_each(function()
        controller, name = cqueues.new(), support.name()
        client = assert(async.connect(adapter, support.url))
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
        controller:wrap(function()
            local _ <close> = assert(client:hold(name, {ttl = TTL}))
            error("thrown", 0)
        end)
        local ok, err, _, thread = controller:loop()
        assert.same({false, "thrown"}, {ok, err})
        blocking:execute("BLPOP", name .. ":nothing", 2 * TTL)
        assert.is_true(loops.is_left(name))
        assert.same({false, "thrown"}, {coroutine.close(thread)})
        assert(controller:loop())
        assert.is_false(loops.is_left(name))
    end)
end)

describe("the loop of luv", function()
    it("resumes coroutines also when what it watches throws", function()
        local reached = false
        local source = {
            generation = function() return 1 end,
            fds = function() return {} end,
            timeout = function() return nil end,
        }
        local waits = coroutine.create(function()
            local ticket = luv_adapter.ticket()
            luv_adapter.sleep_on(ticket)
            reached = true
        end)
        assert(coroutine.resume(waits))
        local watch = luv_adapter.watch(luv_adapter, source, function()
            luv_adapter.wake({thread = waits, asleep = true})
            error("thrown", 0)
        end)
        assert.same({false, "thrown"}, {pcall(watch.step)})
        watch.stop()
        assert.is_true(reached)
        local luv = loops.make("luv")
        local client = assert(async.connect(luv.loop, support.url))
        assert.equal("PONG", luv.call(client.execute, client, "PING"))
    end)
end)
