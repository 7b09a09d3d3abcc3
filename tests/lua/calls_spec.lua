-- How Lua's values become commands, and replies and holders become Lua's values.
local sneck = require "sneck"
local support = require "support"

local client, name

before_each(function()
    client = support.connect()
    name = support.name()
end)

describe("execute", function()
    it("sends any bytes and gives them back", function()
        local bytes = "\0\r\n\255%s"
        assert.equal("OK", client:execute("SET", name, bytes))
        assert.equal(bytes, client:execute("GET", name))
        assert.equal("", client:execute("ECHO", ""))
    end)

    it("sends integers and floats without losing a digit", function()
        for _, number in ipairs({0, -1, math.maxinteger, math.mininteger, 0.1, 1 / 3, -1e300,
            2 ^ 53, 1e15, 5e-324, 0.5}) do
            local text = client:execute("ECHO", number)
            assert.equal(number, tonumber(text))
        end
        assert.equal("3", client:execute("ECHO", 3.0))
        assert.equal("0.1", client:execute("ECHO", 0.1))
        assert.equal("inf", client:execute("ECHO", math.huge))
    end)

    it("gives integers", function()
        assert.equal("integer", math.type(client:execute("STRLEN", name)))
        assert.equal(math.maxinteger, client:execute("INCRBY", name, math.maxinteger))
    end)

    it("gives one nil for nil", function()
        assert.same({n = 1}, table.pack(client:execute("GET", name)))
    end)

    it("gives arrays with their holes, their length, and errors in their place", function()
        local reply = client:execute("EVAL",
            "return {1, false, {'two', {}, redis.error_reply('MINE text')}, false}", 0)
        assert.same({
            1, nil, {"two", {n = 0}, {err = "MINE text"}, n = 3}, nil, n = 4,
        }, reply)
    end)

    it("gives nil, message, SERVER and the server's word for an error", function()
        client:execute("SET", name, "x")
        local none, message, code, word = client:execute("LPUSH", name, "x")
        assert.is_nil(none)
        assert.matches("WRONGTYPE", message)
        assert.equal("SERVER", code)
        assert.equal("WRONGTYPE", word)
    end)

    it("gives no word with other codes", function()
        local results = table.pack(client:execute("SUBSCRIBE", "news"))
        assert.equal(3, results.n)
        assert.equal("INVALID", results[3])
    end)

    it("takes thousands of words", function()
        local words = {}
        for i = 1, 5000 do
            words[i] = i
        end
        assert.equal(5000, client:execute("RPUSH", name, table.unpack(words)))
        local reply = client:execute("LRANGE", name, 0, -1)
        assert.equal(5000, reply.n)
        assert.equal("5000", reply[5000])
    end)
end)

describe("a lock", function()
    it("tells who holds it", function()
        local lock = client:lock(name, {ttl = 60, label = "nightly"})
        assert.same({n = 1}, table.pack(lock:holder()))
        assert.is_false(lock:locked())
        assert(lock:acquire())
        local holder = lock:holder()
        assert.equal(lock:token(), holder.token)
        assert.equal("nightly", holder.label)
        assert.is_false(holder.foreign)
        assert.equal("integer", math.type(holder.pid))
        assert.is_true(holder.ttl > 0 and holder.ttl <= 60)
        assert.is_true(#holder.host > 0)
        assert.is_true(lock:locked())
    end)

    it("tells no ttl of a holder that never ends", function()
        client:execute("SET", name, "foreign\0")
        local holder = client:lock(name):holder()
        assert.same({token = "foreign\0", host = "", pid = 0, label = "", foreign = true}, holder)
    end)

    it("tells a failure to look for the holder from a free lock", function()
        client:execute("LPUSH", name, "x")
        local lock = client:lock(name)
        for _, call in ipairs({lock.holder, lock.locked}) do
            local none, _, code, word = call(lock)
            assert.is_nil(none)
            assert.equal("SERVER", code)
            assert.equal("WRONGTYPE", word)
        end
    end)

    it("has its token as long as it owns one", function()
        local lock = client:lock(name)
        assert.is_nil(lock:token())
        assert(lock:acquire())
        assert.equal(client:execute("GET", name), lock:token())
        assert(lock:release())
        assert.is_nil(lock:token())
    end)

    it("has a long adopted token in full", function()
        local token = ("\0t"):rep(20000)
        assert.equal(token, client:adopt(name, token):token())
    end)

    it("waits as long as its option says, unless told otherwise", function()
        support.take(client, name)
        local lock = client:lock(name, {wait = 0})
        assert.equal("BUSY", select(3, lock:acquire()))
        assert.equal("TIMEOUT", select(3, lock:acquire(0.0004)))
    end)

    it("tells its state as text", function()
        local lock = client:lock(name)
        assert.equal("sneck.lock " .. name .. " (not owned)", tostring(lock))
        assert(lock:acquire())
        assert.equal("sneck.lock " .. name .. " (owned)", tostring(lock))
    end)
end)

describe("a client", function()
    it("puts its prefix before the names of locks only", function()
        local prefixed = support.connect({prefix = "\0p:"})
        local lock = prefixed:lock(name)
        assert(lock:acquire())
        assert.equal(lock:token(), prefixed:execute("GET", "\0p:" .. name))
        assert.equal(name, lock:name())
    end)

    it("has a name on the server, and a label for its locks", function()
        local named = support.connect({client_name = "specs", label = "cron"})
        assert.equal("specs", named:execute("CLIENT", "GETNAME"))
        local lock = named:lock(name)
        assert(lock:acquire())
        assert.equal("cron", lock:holder().label)
    end)

    it("fails with INVALID after it was closed", function()
        local lock = client:lock(name)
        client:close()
        client:close()
        assert.equal("INVALID", select(3, client:execute("PING")))
        assert.equal("INVALID", select(3, lock:acquire()))
    end)

    it("fails with CONNECTION where there is no server", function()
        local none, message, code = support.nowhere():execute("PING")
        assert.is_nil(none)
        assert.matches("/nonexistent/sneck.socket", message)
        assert.equal("CONNECTION", code)
    end)

    it("has a version", function()
        assert.matches("^%d+%.%d+%.%d+$", sneck.version)
    end)
end)
