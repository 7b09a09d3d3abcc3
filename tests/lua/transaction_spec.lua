-- Transactions without a lock, as Lua has them.
local support = require "support"

local add_one, refused = support.add_one, support.refused
local client, other, name

before_each(function()
    client, other = support.connect(), support.connect()
    name = support.name()
end)

-- Neither is the connection within a MULTI, nor is anything watched on it any more.
local function assert_clean()
    other:execute("DEL", name)
    other:execute("INCR", name)
    local results = client:transaction({}, function(tx) tx:queue("GET", name) end, {attempts = 1})
    assert.same({"1", n = 1}, results)
end

-- ------------------------------------------------------------- transactions

describe("a transaction", function()
    it("writes all that was queued", function()
        local a, b = name .. ":a", name .. ":b"
        client:execute("SET", a, 15)
        local expected = {5, 10, {"5", "10", nil, n = 3}, n = 3}
        assert.same(expected, client:transaction({a, b}, function(tx)
            assert.equal(0, tx:conflicts())
            assert.equal("15", tx:get(a))
            assert.same({n = 1}, table.pack(tx:get(b)))
            assert.equal(2, tx:execute("STRLEN", a))
            assert.is_true(tx:queue("DECRBY", a, 10))
            assert.is_true(tx:queue("INCRBY", b, 10))
            tx:queue("MGET", a, b, "no such key")
        end))
    end)

    it("keeps holes and their number in what it gives", function()
        assert.same({nil, "x", nil, n = 3}, client:transaction({}, function(tx)
            tx:queue("GET", name)
            tx:queue("ECHO", "x")
            tx:queue("GET", name)
        end))
    end)

    it("gives an empty table when it writes nothing", function()
        assert.same({n = 0}, client:transaction({name}, function(tx) tx:get(name) end))
        assert.same({n = 0}, client:transaction({name}, function() return "ignored" end))
    end)

    it("watches its keys from the first read on", function()
        local keys, runs = {name .. ":x", name}, 0
        local results = client:transaction(keys, function(tx)
            runs = runs + 1
            keys[1], keys[2] = nil, nil -- it has the keys as they were
            collectgarbage()
            tx:get(name)
            if tx:conflicts() == 0 then
                other:execute("SET", name, "theirs")
            end
            tx:queue("APPEND", name, "+ours")
        end)
        assert.same({11, n = 1}, results)
        assert.equal(2, runs)
    end)

    it("watches more keys when told", function()
        local seen = {}
        local function read(tx)
            assert.is_true(tx:watch(name .. ":1", name .. ":2"))
            tx:watch(name .. ":3")
            seen[#seen + 1] = tx:conflicts() .. ":" .. (tx:get(name .. ":3") or "absent")
            if tx:conflicts() < 2 then
                other:execute("INCR", ("%s:%d"):format(name, tx:conflicts() + 2))
            end
            tx:queue("SET", name, "done")
        end
        assert.same({"OK", n = 1}, client:transaction({}, read))
        assert.same({"0:absent", "1:absent", "2:1"}, seen)
    end)

    it("tells all keys of a conflict", function()
        local details = select(5, client:transaction({name, "another"}, function(tx)
            tx:get(name)
            other:execute("INCR", name)
            tx:queue("SET", name, 0)
        end, {attempts = 1}))
        assert.same({name, "another"}, details.keys)
    end)

    it("keeps the shapes of replies", function()
        local script = "return {7, {'x', {false, {}}}, redis.error_reply('MINE text'), 'a\\0b'}"
        local shape = {7, {"x", {nil, {n = 0}, n = 2}, n = 2}, {err = "MINE text"}, "a\0b", n = 4}
        assert.same({shape, n = 1}, client:transaction({}, function(tx)
            assert.same(shape, tx:execute("EVAL", script, 0))
            tx:queue("EVAL", script, 0)
        end))
    end)

    it("ends with nil and nothing written after an abort", function()
        for _, call in ipairs({
            function(tx) tx:abort() end,
            function(tx) pcall(tx.abort, tx) end,
            function(tx) coroutine.wrap(tx.abort)(tx) end,
        }) do
            assert.same({n = 1}, table.pack(client:transaction({name}, function(tx)
                tx:get(name)
                tx:queue("SET", name, "written")
                call(tx)
                assert.is_false((pcall(tx.queue, tx, "SET", name, "later")))
            end)))
            assert.equal(0, client:execute("EXISTS", name))
        end
        assert_clean()
    end)

    it("that is aborted from within another ends the other, too", function()
        local runs = 0
        assert.same({n = 1}, table.pack(client:transaction({name}, function(outer)
            outer:queue("SET", name, "outer")
            client:transaction({name}, function(inner)
                runs = runs + 1
                inner:queue("SET", name, "inner")
                outer:abort()
            end)
        end)))
        assert.equal(1, runs)
        assert.equal(0, client:execute("EXISTS", name))
    end)

    it("can be within another", function()
        assert.same({"1", n = 1}, client:transaction({name}, function(tx)
            assert(client:update(name .. ":inner", add_one))
            tx:queue("GET", name .. ":inner")
        end))
    end)
end)

describe("an error of the function", function()
    it("ends the transaction and is thrown on unchanged", function()
        for _, failure in ipairs({"text", 42, {}, true, print, false}) do
            local ok, err = pcall(client.transaction, client, {name}, function(tx)
                tx:get(name)
                tx:queue("SET", name, "written")
                error(failure, 0)
            end)
            assert.is_false(ok)
            assert.equal(failure, err)
            ok, err = pcall(client.update, client, name, function() error(failure, 0) end)
            assert.is_false(ok)
            assert.equal(failure, err)
            assert.equal(0, client:execute("EXISTS", name))
        end
        assert.same({false, n = 2}, table.pack(pcall(client.transaction, client, {name},
            function() error(nil) end)))
        assert_clean()
    end)

    it("counts also after an abort or a failed read that the function caught", function()
        client:execute("RPUSH", name, "x")
        for _, call in ipairs({"abort", "get"}) do
            local failure = {}
            local ok, err = pcall(client.transaction, client, {name}, function(tx)
                assert.is_false((pcall(tx[call], tx, name)))
                error(failure)
            end)
            assert.is_false(ok)
            assert.equal(failure, err)
        end
        assert_clean()
    end)

    it("has the function's own position", function()
        refused("boom$", function() client:update(name, function() error("boom") end) end)
    end)
end)

describe("a failure", function()
    it("of one write does not hide the others", function()
        local list = name .. ":list"
        client:execute("RPUSH", list, "x")
        local results = table.pack(client:transaction({name}, function(tx)
            tx:queue("SET", name, 1)
            tx:queue("INCR", list)
            tx:queue("INCR", name)
        end))
        assert.equal(5, results.n)
        assert.is_nil(results[1])
        assert.matches("2 of 3", results[2])
        assert.same({"SERVER", "WRONGTYPE"}, {results[3], results[4]})
        local details = results[5]
        assert.equal(2, details.index)
        assert.matches("^WRONGTYPE", details.results[2].err)
        details.results[2] = nil
        assert.same({"OK", nil, 2, n = 3}, details.results)
        assert_clean()
    end)

    it("to queue a write leaves all unwritten", function()
        local results = table.pack(client:transaction({}, function(tx)
            tx:queue("SET", name, 1)
            tx:queue("SET", name)
        end))
        assert.equal(4, results.n)
        assert.matches("nothing was written", results[2])
        assert.same({"SERVER", "ERR"}, {results[3], results[4]})
        assert.equal(0, client:execute("EXISTS", name))
        assert_clean()
    end)

    it("to read ends the function, and the transaction", function()
        client:execute("RPUSH", name, "x")
        local reached = false
        local none, message, code, word = client:transaction({name}, function(tx)
            tx:queue("SET", name .. ":to", "written")
            tx:get(name)
            reached = true
        end)
        assert.is_nil(none)
        assert.matches("WRONGTYPE", message)
        assert.same({"SERVER", "WRONGTYPE"}, {code, word})
        assert.is_false(reached)
        assert.equal(0, client:execute("EXISTS", name .. ":to"))
        assert_clean()
    end)

    it("to read can be caught, if the server answered", function()
        client:execute("RPUSH", name, "x")
        assert.same({1, n = 1}, client:transaction({name}, function(tx)
            local ok, err = pcall(tx.get, tx, name)
            assert.is_false(ok)
            assert.matches("WRONGTYPE", tostring(err))
            tx:queue("LLEN", name)
        end))
    end)

    it("has a code where there is no server, or a closed client", function()
        local closed = support.connect()
        closed:close()
        for code, failing in pairs({CONNECTION = support.nowhere(), INVALID = closed}) do
            for _, results in ipairs({
                table.pack(failing:transaction({name}, function(tx) tx:get(name) end)),
                table.pack(failing:update(name, add_one)),
            }) do
                assert.equal(3, results.n)
                assert.is_nil(results[1])
                assert.equal(code, results[3])
            end
        end
    end)
end)

describe("a command that has no place in a transaction", function()
    it("is refused", function()
        for _, method in ipairs({"execute", "queue"}) do
            for _, command in ipairs({"MULTI", "EXEC", "UNWATCH", "SUBSCRIBE", "BLPOP"}) do
                for _, swallowed in ipairs({true, false}) do
                    local none, message, code = client:transaction({name}, function(tx)
                        tx:queue("SET", name, "written")
                        if swallowed then
                            pcall(tx[method], tx, command, name, 0)
                        else
                            tx[method](tx, command, name, 0)
                        end
                    end)
                    assert.is_nil(none)
                    assert.matches(command, message)
                    assert.equal("INVALID", code)
                end
            end
        end
        assert.equal(0, client:execute("EXISTS", name))
        local none, _, code = support.nowhere():transaction({}, function(tx)
            tx:execute("BLPOP", name, 0)
        end)
        assert.is_nil(none)
        assert.equal("INVALID", code) -- before there was a connection
    end)
end)

describe("a guard", function()
    it("must be ours", function()
        local lock = client:lock(name .. ":door", {ttl = 60})
        local function write(tx)
            lock:extend()
            tx:get(name)
            lock:extend()
            tx:queue("SET", name, "guarded")
        end
        assert.equal("NOT_OWNER", select(3, client:transaction({name}, write, {guard = lock})))
        assert(lock:acquire())
        assert.same({"OK", n = 1},
            client:transaction({name}, write, {guard = lock, attempts = 1}))
        assert.equal("guarded!",
            client:update(name, function(old) return old .. "!" end, {guard = lock}))
        local none, message, code = client:update(name, function()
            client:force_release(name .. ":door")
            return "too late"
        end, {guard = lock})
        assert.is_nil(none)
        assert.matches("door", message)
        assert.equal("NOT_OWNER", code)
        assert.equal("guarded!", client:execute("GET", name))
    end)

    it("is not freed while it guards, nor is the client, by their finalizers", function()
        local lock = assert(client:hold(name .. ":door"))
        local finalize_lock, finalize_client = getmetatable(lock).__gc, getmetatable(client).__gc
        assert.equal("1", client:update(name, function(old)
            finalize_lock(lock)
            finalize_client(client)
            return add_one(old)
        end, {guard = lock}))
        finalize_lock(lock)
        finalize_client(client)
        assert.error_matches(function() client:execute("PING") end, "the client was freed")
        refused("guard was freed", function() other:update(name, add_one, {guard = lock}) end)
    end)
end)

-- ------------------------------------------------------- what it is no use for

describe("misuse", function()
    it("throws before anything is sent", function()
        local c = support.nowhere()
        local function nothing() end
        refused("the function must be a function, not nil", function() c:transaction({}) end)
        refused("the function must be a function, not table", function() c:transaction({}, {}) end)
        refused("keys must be a table, not string", function() c:transaction("k", nothing) end)
        refused("the function must be a function, not n", function() c:transaction(nothing) end)
        refused("keys must be a table, not nil", function() c:transaction(nil, nothing) end)
        refused("transaction: a key is NULL or longer", function()
            c:transaction({("x"):rep(2 ^ 20 + 1)}, nothing)
        end)
        refused("keys must be a list from 1 on without holes", function()
            c:transaction({"k", [3] = "l"}, nothing)
        end)
        refused("key 2 must be a string, not number", function()
            c:transaction({"k", 2}, nothing)
        end)
    end)

    it("of options throws, too", function()
        local c = support.nowhere()
        local function nothing() end
        local function with(options)
            return function() c:transaction({}, nothing, options) end
        end
        for _, value in ipairs({0, -1, 1.5, 2 ^ 31, 0 / 0, math.huge, "3", true, {}}) do
            refused("attempts must be a whole number from 1", with({attempts = value}))
        end
        for _, value in ipairs({-1, 0 / 0, -math.huge, 1e300, "3", true}) do
            refused("wait must be", with({wait = value}))
        end
        for _, value in ipairs({"lock", c, io.stdout, 1, true}) do
            refused("guard must be a lock, not", with({guard = value}))
        end
        refused("transaction: the guard belongs to another client",
            with({guard = client:lock("door")}))
        refused("unknown option ttl: there are attempts, wait, guard", with({ttl = 1}))
        refused("options must be a table, not function", with(nothing))
    end)

    it("inside of the function throws there", function()
        for _, call in ipairs({
            function(tx) tx:queue() end,
            function(tx) tx:execute() end,
            function(tx) tx:queue("SET", name, nil) end,
            function(tx) tx:execute("GET", {}) end,
            function(tx) tx:get(5) end,
            function(tx) tx:get() end,
            function(tx) tx:watch(name, true) end,
        }) do
            refused("", function() client:transaction({name}, call) end)
        end
        assert.error_matches(function()
            client:transaction({name}, function(tx) tx.get(client, name) end)
        end, "sneck.transaction expected")
        assert_clean()
    end)

    it("of a transaction that has ended throws", function()
        local kept
        assert.is_nil(client:transaction({}, function(tx)
            kept = tx
            assert.equal("sneck.transaction (running)", tostring(tx))
            pcall(tx.abort, tx)
            assert.equal("sneck.transaction (aborted)", tostring(tx))
        end))
        for _, call in ipairs({
            function() kept:get(name) end,
            function() kept:execute("PING") end,
            function() kept:queue("PING") end,
            function() kept:watch(name) end,
            function() kept:abort() end,
            function() kept:conflicts() end,
            function() client:transaction({}, function() kept:queue("PING") end) end,
        }) do
            refused("the transaction has ended: use it inside", call)
        end
        assert.equal("sneck.transaction (ended)", tostring(kept))
    end)

    it("is to yield from the function", function()
        local ok, err = coroutine.resume(coroutine.create(function()
            client:update(name, function() return coroutine.yield() end)
        end))
        assert.is_false(ok)
        assert.matches("attempt to yield across a C%-call boundary", err)
        ok, err = coroutine.resume(coroutine.create(function()
            client:transaction({name}, function(tx)
                tx:get(name)
                coroutine.yield()
            end)
        end))
        assert.is_false(ok)
        assert.matches("attempt to yield across a C%-call boundary", err)
        assert_clean()
    end)
end)

-- ------------------------------------------------------ where else it may run

describe("the function", function()
    it("may run in a coroutine, and use others", function()
        local results = coroutine.wrap(function()
            return client:transaction({name}, function(tx)
                local read = coroutine.wrap(function() return tx:get(name) or "absent" end)
                tx:queue("SET", name, read())
            end)
        end)()
        assert.same({"OK", n = 1}, results)
        assert.equal("absent", client:execute("GET", name))
    end)

    it("may collect garbage", function()
        assert.same({"OK", n = 1}, client:transaction({name}, function(tx)
            tx:get(name)
            tx:queue("SET", name, 1)
            support.collect()
        end))
    end)

    it("may set a debug hook, which is no Ctrl-C", function()
        local hook = debug.gethook()
        local _, is_main = coroutine.running()
        assert.is_true(is_main)
        local results = table.pack(client:transaction({name}, function(tx)
            debug.sethook(function() end, "", 10 ^ 6)
            other:execute("CLIENT", "PAUSE", 300, "WRITE") -- so that a wait looks for it
            tx:execute("PUBLISH", name, "x")
            tx:queue("SET", name, 1)
            debug.sethook(hook)
            other:execute("CLIENT", "PAUSE", 300, "WRITE")
        end))
        assert.same({{"OK", n = 1}, n = 1}, results)
    end)

    it("is run again when the connection was lost", function()
        local runs, reached = 0, 0
        assert.same({"OK", n = 1}, client:transaction({name}, function(tx)
            runs = runs + 1
            local id = tx:execute("CLIENT", "ID")
            if runs < 3 then
                assert.equal(1, other:execute("CLIENT", "KILL", "ID", id))
            end
            tx:get(name)
            reached = reached + 1
            tx:queue("SET", name, runs)
        end, {attempts = 3}))
        assert.same({3, 1}, {runs, reached})
        assert.equal("3", client:execute("GET", name))
    end)

    it("may close the client", function()
        local results = table.pack(client:transaction({name}, function(tx)
            tx:get(name)
            tx:queue("SET", name, "written")
            client:close()
        end))
        assert.is_true(results.n == 1 or results.n == 3)
        assert.equal("INVALID", select(3, client:update(name, add_one)))
    end)
end)
