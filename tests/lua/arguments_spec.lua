-- Misuse throws, at the user's line, before anything is sent: the client here has no
-- server, so whatever did send something would end with another error.
local sneck = require "sneck"
local support = require "support"

local refused = support.refused
local client, lock

before_each(function()
    client = support.nowhere()
    lock = client:lock("door")
end)

describe("a duration", function()
    local zero = {0, 0.0, -0.0}
    local wrong = {-1, -0.001, 0 / 0, math.huge, -math.huge, 1e300, 31536000.001, math.maxinteger,
        math.mininteger, "10", true, {}}

    for _, value in ipairs(wrong) do
        it("is refused: " .. tostring(value), function()
            refused("ttl must be", function() client:lock("door", {ttl = value}) end)
            refused("wait must be", function() client:lock("door", {wait = value}) end)
            refused("poll must be", function() client:lock("door", {poll = value}) end)
            refused("poll must be", function() client:adopt("door", "t", {poll = value}) end)
            refused("poll must be", function() client:hold("door", {poll = value}) end)
            refused("poll must be", function() client:with_lock("door", {poll = value}, print) end)
            refused("ttl must be", function() client:adopt("door", "t", {ttl = value}) end)
            refused("ttl must be", function() client:hold("door", {ttl = value}) end)
            refused("ttl must be", function() client:with_lock("door", {ttl = value}, print) end)
            refused("wait must be", function() lock:acquire(value) end)
            refused("ttl must be", function() lock:extend(value) end)
            refused("wait must be", function() lock:acquire_start(value) end)
            refused("ttl must be", function() lock:extend_start(value) end)
            refused("timeout must be", function() sneck.connect(nil, {timeout = value}) end)
            refused("connect_timeout must be", function()
                sneck.connect(nil, {connect_timeout = value})
            end)
        end)
    end

    it("of zero is a wait, but neither a ttl, a poll nor a timeout", function()
        for _, value in ipairs(zero) do
            refused("ttl must be", function() client:lock("door", {ttl = value}) end)
            refused("poll must be", function() client:lock("door", {poll = value}) end)
            refused("ttl must be", function() lock:extend(value) end)
            refused("timeout must be", function() sneck.connect(nil, {timeout = value}) end)
            assert.equal("CONNECTION", select(3, lock:acquire(value)))
        end
    end)

    it("below the shortest ttl is refused", function()
        for _, value in ipairs({1e-300, 0.0004, 0.002}) do
            refused("lock \"door\": a ttl is", function() client:lock("door", {ttl = value}) end)
            refused("ttl must be at least 0.003", function() lock:extend(value) end)
        end
    end)

    it("of a timestamp lock is called by its name", function()
        refused("timeout must be", function() client:legacy_lock("door", {timeout = 0}) end)
        refused("lock \"door\": a timeout is", function()
            client:legacy_lock("door", {timeout = 0.001})
        end)
        refused("milliseconds must be", function()
            client:legacy_lock("door", {milliseconds = 1})
        end)
    end)

    it("is rounded up to milliseconds, and not truncated to seconds", function()
        local rounded = {[0.003] = 0.003, [0.0031] = 0.004, [0.07] = 0.07, [1.5] = 1.5,
            [4.035] = 4.035, [0.5004] = 0.501, [31536000] = 31536000.0}
        for given, expected in pairs(rounded) do
            assert.equal(expected, client:lock("door", {ttl = given}):ttl())
        end
        assert.equal(10.0, client:lock("door"):ttl())
    end)
end)

describe("a name", function()
    it("is a string that is not empty", function()
        for _, value in ipairs({false, 42, {}}) do
            refused("the name must be a string", function() client:lock(value) end)
        end
        refused("the name must be a string, not nil", function() client:lock() end)
        refused("lock: the name is empty", function() client:lock("") end)
        refused("the name must be a string", function() client:hold() end)
        refused("the name must be a string", function() client:with_lock(nil, nil, print) end)
    end)

    it("of a lock that is asked for or taken away is a string that is not empty", function()
        for _, method in ipairs({"waiters", "waiters_start", "force_release",
            "force_release_start"}) do
            local call = client[method]
            for _, value in ipairs({false, 42, {}}) do
                refused("the name must be a string", function() call(client, value) end)
            end
            refused("the name must be a string, not n", function() call(client) end)
            refused("lock: the name is empty", function() call(client, "") end)
            refused("lock .-: the name, its prefix included, is longer", function()
                call(client, ("x"):rep(2 ^ 20 + 1))
            end)
        end
    end)

    it("is kept as it is", function()
        local odd = "%s {a}\0\255\n"
        assert.equal(odd, client:lock(odd):name())
        assert.equal("sneck.lock " .. odd .. " (not owned)", tostring(client:lock(odd)))
    end)
end)

describe("a flag", function()
    it("is true or false", function()
        for _, value in ipairs({0, 1, "true", {}}) do
            refused("fair must be true or false, not", function()
                client:lock("door", {fair = value})
            end)
            refused("fair must be", function() client:adopt("door", "t", {fair = value}) end)
            refused("fair must be", function() client:hold("door", {fair = value}) end)
            refused("fair must be", function() client:with_lock("door", {fair = value}, print) end)
        end
        assert(client:lock("door", {fair = true}))
        assert(client:lock("door", {fair = false}))
    end)
end)

describe("a token", function()
    it("is a string that is not empty", function()
        refused("the token must be a string, not nil", function() client:adopt("door") end)
        refused("the token must be a string", function() client:adopt("door", 42) end)
        refused("lock: an adopted token", function() client:adopt("door", "") end)
    end)
end)

describe("options", function()
    it("that are not known are refused", function()
        refused("unknown option tll: there are ttl, wait, label", function()
            client:lock("door", {tll = 10})
        end)
        refused("unknown option text", function() client:adopt("door", "t", {text = true}) end)
        refused("unknown option 1", function() client:hold("door", {10}) end)
        refused("unknown option name", function() client:with_lock("door", {name = 1}, print) end)
        refused("unknown option ttl: there are timeout, connect_timeout", function()
            sneck.connect(nil, {ttl = 10})
        end)
    end)

    it("stand in a table", function()
        refused("options must be a table, not number", function() client:lock("door", 10) end)
        refused("options must be a table, not function", function()
            client:with_lock("door", print)
        end)
        refused("options must be a table, not string", function() sneck.connect(nil, "label") end)
    end)

    it("of text hold no NUL", function()
        refused("label must not hold a NUL", function() client:lock("door", {label = "a\0b"}) end)
        refused("client_name must not", function() sneck.connect(nil, {client_name = "a\0b"}) end)
        refused("label must be a string", function() sneck.connect(nil, {label = 1}) end)
        refused("the url must not hold a NUL", function() sneck.connect("redis://a\0b") end)
    end)
end)

describe("a url", function()
    it("that is not valid gives nil, message and INVALID", function()
        for _, url in ipairs({"http://x", "redis://h:99999", "redis://h/0?what=1", "rediss://h"}) do
            local none, message, code = sneck.connect(url)
            assert.is_nil(none)
            assert.is_string(message)
            assert.equal("INVALID", code)
        end
    end)

    it("is a string", function()
        refused("the url must be a string, not number", function() sneck.connect(6379) end)
    end)
end)

describe("a body", function()
    it("is a function", function()
        refused("the body must be a function, not nil", function() client:with_lock("door") end)
    end)
end)

describe("a raw command", function()
    it("has no nil and no hole, and only strings and numbers", function()
        refused("there is no command", function() client:execute() end)
        refused("word 1 of the command must be", function() client:execute(nil) end)
        refused("word 2 of the command must be .- not nil", function()
            client:execute("SET", nil, "x")
        end)
        refused("word 2 of the command must be .- not nil", function()
            client:execute("GET", nil)
        end)
        refused("word 2 of the command must be .- not boolean", function()
            client:execute("SET", true)
        end)
        refused("word 3 of the command must be .- not table", function()
            client:execute_start("SET", "key", {})
        end)
    end)
end)

describe("an object", function()
    it("of another type is refused", function()
        assert.error_matches(function() lock.acquire(client) end, "sneck.lock expected")
        assert.error_matches(function() client.execute(lock, "PING") end, "sneck.client expected")
        assert.error_matches(function() client.lock(nil, "door") end, "sneck.client expected")
    end)
end)
