-- Ops: one call under way, driven by hand.
local support = require "support"

local client, name, lock

before_each(function()
    client = support.connect()
    name = support.name()
    lock = client:lock(name, {ttl = 60})
end)

-- A loop without any waiting; every call on the way is checked for its form.
local function drive(op)
    while not op:step() do
        for _, entry in ipairs(op:fds()) do
            assert.equal("integer", math.type(entry.fd))
            assert.is_true(({r = true, w = true, rw = true})[entry.events])
        end
        local timeout = op:timeout()
        assert.is_true(timeout == nil or timeout >= 0)
    end
    return op:result()
end

describe("an op", function()
    it("gives what the blocking call would", function()
        assert.same({true, n = 1}, table.pack(drive(lock:acquire_start())))
        assert.is_true(lock:owned())
        assert.equal("BUSY", select(3, drive(client:lock(name):acquire_start(0))))
        assert.equal(lock:token(), drive(lock:holder_start()).token)
        assert.is_true(drive(lock:extend_start()))
        assert.is_true(drive(lock:extend_start(30)))
        assert.is_true(drive(lock:release_start()))
        assert.equal("NOT_OWNER", select(3, drive(lock:release_start())))
        assert.is_true(lock:acquire())
        assert.is_true(drive(lock:force_release_start()))
        assert.is_false(drive(lock:force_release_start()))
        assert.equal("PONG", drive(client:execute_start("PING")))
        assert.same({n = 1}, table.pack(drive(client:execute_start("GET", name))))
        assert.equal("SERVER", select(3, drive(client:execute_start("NOSUCH"))))
    end)

    it("uses the lock's own wait", function()
        support.take(client, name)
        assert.equal("BUSY", select(3, client:lock(name, {wait = 0}):acquire_start():wait()))
    end)

    it("can be waited for", function()
        assert.is_true(lock:acquire_start():wait())
        local op = client:execute_start("ECHO", "x")
        assert.equal("x", op:wait())
        assert.equal("x", op:wait())
    end)

    it("keeps its result", function()
        local op = client:execute_start("EVAL", "return {1, false}", 0)
        drive(op)
        assert.same({1, nil, n = 2}, op:result())
        assert.equal(op:result(), op:result())
    end)

    it("has nothing to wait for when it has ended", function()
        local op = client:execute_start("PING")
        drive(op)
        assert.is_true(op:step())
        assert.same({}, op:fds())
        assert.equal(0, op:timeout())
        op:cancel()
        assert.equal("PONG", op:result())
    end)

    it("has no result while it is pending", function()
        support.take(client, name)
        local op = lock:acquire_start()
        assert.is_false(op:step())
        assert.error_matches(function() op:result() end, "the op has not ended")
        assert.matches("^sneck.op %(pending%)", tostring(op))
    end)

    it("is cancelled, and leaves no token", function()
        support.take(client, name)
        local op = lock:acquire_start()
        assert.is_false(op:step())
        op:cancel()
        assert.is_true(op:step())
        assert.equal("INTERRUPTED", select(3, op:result()))
        assert.is_nil(lock:token())
        assert.matches("^sneck.op %(ended%)", tostring(op))
    end)

    it("is cancelled at the end of a <close> variable's block", function()
        local kept
        do
            local op <close> = lock:acquire_start()
            kept = op
        end
        assert.is_true(kept:step())
        assert.error_matches(function() kept:result() end, "closed before its result")
    end)

    it("gives its connection back with its result", function()
        local client_name = name:gsub("%W", "_")
        local named = support.connect({client_name = client_name})
        for _ = 1, 20 do
            drive(named:execute_start("PING"))
        end
        local _, own = named:execute("CLIENT", "LIST"):gsub("name=" .. client_name, "")
        assert.equal(1, own)
    end)

    it("runs beside others", function()
        assert(lock:acquire())
        local waiting = client:lock(name, {ttl = 60}):acquire_start(60)
        assert.is_false(waiting:step())
        assert.equal("x", client:execute("ECHO", "x"))
        assert(lock:release())
        assert.is_true(drive(waiting))
    end)
end)
