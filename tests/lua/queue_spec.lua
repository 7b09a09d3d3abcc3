-- Who waits for a lock, locks that are taken away, and what a client has counted.
local support = require "support"

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

local function labels(list)
    local found = {}
    for i, waiter in ipairs(list) do
        found[i] = waiter.label
    end
    return found
end

-- Starts an acquire that waits; it is in the queue when this returns.
local function wait_behind(label)
    local lock = client:lock(name, {ttl = 60, label = label})
    local op = lock:acquire_start()
    local before = #client:waiters(name)
    repeat
        assert.is_false(op:step())
    until #client:waiters(name) > before
    return {lock = lock, op = op}
end

describe("waiters", function()
    it("are none, in a table, where nobody waits", function()
        assert.same({n = 1, {}}, table.pack(client:waiters(name)))
        assert(client:lock(name):acquire())
        assert.same({}, client:waiters(name))
    end)

    it("are told by host, pid, label and time, the next one first", function()
        local held = client:lock(name, {ttl = 60})
        assert(held:acquire())
        local waiting = {wait_behind("first"), wait_behind(""), wait_behind("third")}
        local list = client:waiters(name)
        assert.same({"first", "", "third"}, labels(list))
        for i, waiter in ipairs(list) do
            assert.equal(held:holder().host, waiter.host)
            assert.equal(held:holder().pid, waiter.pid)
            assert.equal("integer", math.type(waiter.pid))
            assert.equal("float", math.type(waiter.waited))
            assert.is_true(waiter.waited >= 0 and waiter.waited <= list[1].waited, i)
        end
        for _, each in ipairs(waiting) do
            each.op:cancel()
        end
    end)

    it("have waited for seconds", function()
        local now = client:execute("TIME")
        local since = (math.tointeger(now[1]) - 90) * 1000000
        local entry = "sneck:host:7:label:" .. ("0"):rep(32) .. " inbox 1000"
        client:execute("ZADD", ("{%s}:sneck:queue"):format(name), since, entry)
        local waiter = client:waiters(name)[1]
        assert.is_true(waiter.waited >= 90 and waiter.waited < 150)
        waiter.waited = nil
        assert.same({host = "host", pid = 7, label = "label"}, waiter)
    end)

    it("are told by an op, too", function()
        assert(client:lock(name):acquire())
        local waiting = wait_behind("only")
        local op = client:waiters_start(name)
        assert.same({"only"}, labels(op:wait()))
        assert.equal(op:result(), op:result())
        waiting.op:cancel()
    end)

    it("are those of a name with the client's prefix", function()
        local prefixed = support.connect({prefix = name:sub(1, -2)})
        assert(client:lock(name):acquire())
        local waiting = wait_behind("waits")
        assert.same({"waits"}, labels(prefixed:waiters(name:sub(-1))))
        waiting.op:cancel()
        assert.is_true(prefixed:force_release(name:sub(-1)))
    end)

    it("leave the queue when they are cancelled or closed", function()
        assert(client:lock(name, {ttl = 60}):acquire())
        wait_behind("cancelled").op:cancel()
        do
            local _ <close> = wait_behind("closed").op
        end
        while #client:waiters(name) > 0 do -- the cleanup is on its way
            client:execute("PING")
        end
    end)

    it("get the lock in their order", function()
        local held = client:lock(name, {ttl = 60})
        assert(held:acquire())
        local first, second = wait_behind("first"), wait_behind("second")
        assert(held:release())
        assert.is_true(first.op:wait())
        assert.equal(first.lock:token(), client:execute("GET", name))
        assert.same({"second"}, labels(client:waiters(name)))
        assert(first.lock:release())
        assert.is_true(second.op:wait())
    end)
end)

describe("a fair lock", function()
    it("does not pass those who wait, whichever call takes it", function()
        assert(client:lock(name, {ttl = 60}):acquire())
        local waiting = wait_behind("first")
        local fair = {ttl = 60, wait = 0, fair = true}
        local ways = {
            function() return client:lock(name, fair):acquire() end,
            function() return client:adopt(name, "token", fair):acquire() end,
            function() return client:hold(name, fair) end,
            function() return client:with_lock(name, fair, print) end,
        }
        for _, way in ipairs(ways) do
            client:execute("DEL", name) -- nobody is told, so it is free with one who waits
            assert.equal("BUSY", select(3, way()))
            support.take(client, name)
            waiting.op:cancel()
            waiting = wait_behind("next")
        end
        waiting.op:cancel()
    end)

    it("is taken where nobody waits", function()
        assert(client:lock(name, {fair = true}):acquire(0))
    end)
end)

describe("a waiter without wake-ups", function()
    local unheard

    before_each(function()
        client:execute("ACL", "SETUSER", "unheard", "on", "nopass", "~*", "&*", "+@all", "-publish")
        local sneck = require "sneck"
        local url = support.url:gsub("unix://", "unix://unheard:any@")
        unheard = assert(sneck.connect(url, support.patient()))
    end)

    after_each(function()
        client:execute("ACL", "DELUSER", "unheard")
    end)

    it("asks as often as its option says", function()
        local held = client:lock(name, {ttl = 60})
        assert(held:acquire())
        local op = unheard:lock(name, {ttl = 60, poll = 0.001}):acquire_start()
        while unheard:stats().polls < 3 do
            assert.is_false(op:step())
        end
        assert.same({}, client:waiters(name))
        assert(held:release())
        assert.is_true(op:wait())
        assert.equal("denied", unheard:stats().wakeups)
        assert.equal(0, unheard:stats().handoffs)
    end)

    it("asks seldom if it is told so", function()
        assert(client:lock(name, {ttl = 60}):acquire())
        local lock = unheard:lock(name, {ttl = 60, poll = 3600})
        assert.equal("TIMEOUT", select(3, lock:acquire(0.3)))
        assert.is_true(unheard:stats().polls <= 1) -- the one that ends the wait
    end)
end)

describe("force_release", function()
    it("tells whether the lock was held", function()
        assert.same({false, n = 1}, table.pack(client:force_release(name)))
        local lock = client:lock(name)
        assert(lock:acquire())
        assert.same({true, n = 1}, table.pack(client:force_release(name)))
        assert.equal("NOT_OWNER", select(3, lock:release()))
        assert.is_false(client:force_release_start(name):wait())
    end)

    it("hands the lock to whoever waits first", function()
        assert(client:lock(name, {ttl = 60}):acquire())
        local first, second = wait_behind("first"), wait_behind("second")
        assert.is_true(client:force_release_start(name):wait())
        assert.is_true(first.op:wait())
        assert.same({"second"}, labels(client:waiters(name)))
        second.op:cancel()
    end)

    it("takes a foreign lock away, but nothing that is no lock", function()
        support.take(client, name)
        assert.is_true(client:force_release(name))
        client:execute("LPUSH", name, "x")
        local none, message, code, word = client:force_release(name)
        assert.is_nil(none)
        assert.matches("WRONGTYPE", message)
        assert.equal("SERVER", code)
        assert.equal("WRONGTYPE", word)
    end)
end)

describe("a call about a name", function()
    it("fails with a code where there is no server, or a closed client", function()
        local away, closed = support.nowhere(), support.connect()
        closed:close()
        for _, method in ipairs({"waiters", "force_release"}) do
            assert.equal("CONNECTION", select(3, away[method](away, name)))
            assert.equal("INVALID", select(3, closed[method](closed, name)))
            local op = closed[method .. "_start"](closed, name)
            assert.equal("INVALID", select(3, op:result()))
        end
    end)
end)

describe("stats", function()
    it("are zero for a new client, and known without a server", function()
        assert.same({acquisitions = 0, contended = 0, handoffs = 0, polls = 0, wait = 0.0,
            losses = 0, unknown = 0, wakeups = "untried"}, support.nowhere():stats())
    end)

    it("count what the client does", function()
        local lock = client:lock(name, {ttl = 60})
        assert(lock:acquire())
        assert.equal("TIMEOUT", select(3, client:lock(name):acquire(1)))
        support.take(client, name)
        assert.equal("NOT_OWNER", select(3, lock:release()))
        local stats = client:stats()
        assert.is_true(stats.wait >= 1)
        assert.is_true(stats.polls >= 1)
        stats.wait, stats.polls = nil, nil
        assert.same({acquisitions = 1, contended = 1, handoffs = 0, losses = 1, unknown = 0,
            wakeups = "used"}, stats)
        client:close()
        assert.equal(1, client:stats().acquisitions)
    end)

    it("count a lock that was handed over", function()
        repeat -- a waiter's own timer can win against the hand-over, but not for ever
            local held = client:lock(name, {ttl = 60})
            assert(held:acquire())
            local waiting = wait_behind("waits")
            assert(held:release())
            assert.is_true(waiting.op:wait())
            assert(waiting.lock:release())
        until client:stats().handoffs > 0
    end)
end)
