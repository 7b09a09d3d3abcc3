-- Coroutines: the same calls on every loop, alone and by the thousands.
local async = require "sneck.async"
local core = require "sneck.core"
local loops = require "loops"
local sneck = require "sneck"
local support = require "support"

local COROUTINES, INCREMENTS = 2000, 10

local blocking = support.connect()

local function kill_connections(client_name)
    for line in assert(blocking:execute("CLIENT", "LIST")):gmatch("[^\n]+") do
        if line:find(" name=" .. client_name .. " ", 1, true) then
            assert(blocking:execute("CLIENT", "KILL", "ID", line:match("^id=(%d+)")))
        end
    end
end

for _, loop_name in ipairs(loops.names) do
    describe("in coroutines of the loop " .. loop_name .. ",", function()
        local own, client, client_name, name

        local function connect(options)
            options = support.patient(options)
            client_name = support.name():gsub("%W", "_")
            options.client_name = client_name
            client = assert(async.connect(own.loop, support.url, options))
        end

        before_each(function()
            own = loops.make(loop_name)
            name = support.name()
            connect()
        end)

        describe("a lock", function()
            it("gives what the blocking calls give", function()
                own.call(function()
                    local lock = client:lock(name, {ttl = 60, label = "mine"})
                    assert.is_true(lock:acquire())
                    assert.is_true(lock:owned())
                    assert.is_true(lock:locked())
                    assert.equal(lock:token(), lock:holder().token)
                    assert.equal("mine", lock:holder().label)
                    assert.is_true(lock:extend(30))
                    assert.is_true(lock:remaining() > 20 and lock:remaining() <= 30)
                    assert.is_true(lock:extend())
                    assert.same({name, 60}, {lock:name(), lock:ttl()})
                    assert.equal("BUSY", select(3, client:lock(name):acquire(0)))
                    assert.equal("TIMEOUT", select(3, client:lock(name):acquire(0.01)))
                    assert.equal("BUSY", select(3, client:hold(name, {wait = 0})))
                    assert.is_true(client:adopt(name, lock:token(), {ttl = 60}):release())
                    assert.equal("NOT_OWNER", select(3, lock:release()))
                    assert.is_nil(lock:token())
                    assert.same({n = 1}, table.pack(lock:holder()))
                    assert.is_false(lock:locked())
                    assert.matches("^sneck.async.lock .* %(not owned%)$", tostring(lock))
                end)
            end)

            it("has every call of one that blocks", function()
                local lock = client:lock(name)
                for method in pairs(core.lock_type.__index) do
                    assert.equal(method:find("_start$") == nil, lock[method] ~= nil, method)
                end
                for method in pairs(core.client_type.__index) do
                    assert.equal(method:find("_start$") == nil, client[method] ~= nil, method)
                end
            end)

            it("tells a failure of the server", function()
                blocking:execute("RPUSH", name, "x")
                own.call(function()
                    assert.same({"SERVER", "WRONGTYPE"},
                        {select(3, client:lock(name):holder())})
                    assert.same({"SERVER", "WRONGTYPE"},
                        {select(3, client:lock(name):locked())})
                    assert.equal("SERVER", select(3, client:with_lock(name, nil, error)))
                end)
            end)

            it("is released at the end of a block", function()
                own.call(function()
                    do
                        local lock <close> = assert(client:hold(name, {ttl = 60}))
                        assert.is_true(lock:owned())
                    end
                    assert.is_false(client:lock(name):locked())
                end)
            end)

            it("throws at the end of a clean block when it was lost", function()
                own.call(function()
                    local function lose(thrown)
                        local lock <close> = assert(client:hold(name, {ttl = 60}))
                        assert.is_true(client:force_release(name))
                        if thrown then
                            error(thrown)
                        end
                        return lock
                    end
                    assert.error_matches(lose, name)
                    local thrown = {}
                    assert.equal(thrown, select(2, pcall(lose, thrown)))
                end)
            end)

            it("is held around a function that may wait", function()
                own.call(function()
                    local results = table.pack(client:with_lock(name, nil, function(lock)
                        assert.is_true(lock:extend())
                        return 1, client:execute("ECHO", "y")
                    end))
                    assert.same({1, "y", n = 2}, results)
                    local thrown = {}
                    assert.equal(thrown, select(2, pcall(client.with_lock, client, name, nil,
                        function() error(thrown) end)))
                    assert.is_false(client:lock(name):locked())
                    support.refused("lock ", function()
                        client:with_lock(name, nil, function() client:force_release(name) end)
                    end)
                end)
            end)

            it("tells who waits for it", function()
                own.spawn(function()
                    local lock <close> = assert(client:hold(name, {ttl = 60}))
                    own.spawn(function()
                        assert(client:lock(name, {label = "next"}):acquire())
                    end)
                    local waiters
                    repeat
                        waiters = assert(client:waiters(name))
                    until #waiters > 0
                    assert.equal("next", waiters[1].label)
                    assert.is_true(lock:owned())
                end)
                own.run()
            end)
        end)

        it("a raw command gives its reply", function()
            own.call(function()
                assert.equal("x", client:execute("ECHO", "x"))
                assert.same({n = 1}, table.pack(client:execute("GET", name)))
                assert.same({nil, "ERR"}, {nil, select(4, client:execute("NOSUCH"))})
            end)
        end)

        it("thousands wait in turn on two connections, and count exactly", function()
            local order, started = {}, 0
            local function add(lock)
                local now = tonumber(client:execute("GET", name .. ":sum") or 0)
                assert(client:execute("SET", name .. ":sum", now + 1))
                assert(lock:release())
            end
            for _ = 1, COROUTINES do
                own.spawn(function()
                    started = started + 1
                    local place, lock = started, client:lock(name, {ttl = 60})
                    assert(lock:acquire())
                    order[#order + 1] = place
                    if place == COROUTINES then
                        assert.equal(2, loops.count_connections(client_name))
                    end
                    add(lock)
                    for _ = 2, INCREMENTS do
                        assert(lock:acquire())
                        add(lock)
                    end
                end)
            end
            own.run()
            assert.equal(tostring(COROUTINES * INCREMENTS), blocking:execute("GET", name .. ":sum"))
            for place = 1, COROUTINES do
                assert.equal(place, order[place])
            end
            assert.is_false(loops.is_left(name))
        end)

        it("thousands change one key on one more connection, and count exactly", function()
            for _ = 1, COROUTINES do
                own.spawn(function()
                    for _ = 1, INCREMENTS do
                        assert(client:update(name, support.add_one))
                    end
                end)
            end
            own.run()
            assert.equal(tostring(COROUTINES * INCREMENTS), blocking:execute("GET", name))
            assert.equal(1, loops.count_connections(client_name))
        end)

        describe("a transaction", function()
            it("writes all at its end, by a function that may wait", function()
                own.call(function()
                    local results = assert(client:transaction({name}, function(tx)
                        assert.is_nil(tx:get(name))
                        assert.equal("x", client:execute("ECHO", "x"))
                        tx:queue("SET", name, 1.5)
                        tx:queue("INCRBYFLOAT", name, 1)
                        assert.is_nil(client:execute("GET", name))
                    end))
                    assert.same({"OK", "2.5", n = 2}, results)
                    assert.same({n = 0}, client:transaction({name}, function() end))
                end)
            end)

            it("refuses a key to watch that is none, wherever it stands", function()
                own.call(function()
                    assert(client:transaction({name}, function(tx)
                        for _, keys in ipairs {{n = 1}, {name, nil, name, n = 3}, {1, n = 1}} do
                            support.refused("a key must be a string, not n", function()
                                tx:watch(table.unpack(keys, 1, keys.n))
                            end)
                        end
                    end))
                end)
            end)

            it("is run again after a conflict", function()
                own.call(function()
                    local runs = {}
                    assert(client:transaction({name}, function(tx)
                        runs[#runs + 1] = tx:conflicts()
                        assert.is_true(tx:watch(name .. ":more", name .. ":other"))
                        tx:get(name)
                        if #runs < 3 then
                            client:execute("INCR", name .. ":other")
                        end
                        tx:queue("SET", name, "mine")
                    end))
                    assert.same({0, 1, 2}, runs)
                end)
            end)

            it("gives up after its attempts", function()
                own.call(function()
                    local keys = {name}
                    local function change(tx)
                        keys[1] = "changed"
                        tx:get(name)
                        client:execute("INCR", name)
                        tx:queue("SET", name, "mine")
                    end
                    local result, message, code, word, details =
                        client:transaction(keys, change, {attempts = 2, wait = 60})
                    assert.same({nil, "CONFLICT", nil}, {result, code, word})
                    assert.matches("2 attempts", message)
                    assert.same({2, {name}}, {details.attempts, details.keys})
                    assert.equal("number", type(details.waited))
                end)
            end)

            it("tells which write failed", function()
                blocking:execute("RPUSH", name, "x")
                own.call(function()
                    local _, _, code, word, details = client:transaction({}, function(tx)
                        tx:queue("SET", name .. ":k", 1)
                        tx:queue("INCR", name)
                    end)
                    assert.same({"SERVER", "WRONGTYPE", 2}, {code, word, details.index})
                    assert.equal("OK", details.results[1])
                    assert.matches("WRONGTYPE", details.results[2].err)
                    assert.same({"SERVER", "WRONGTYPE", n = 2},
                        table.pack(select(3, client:update(name, error))))
                end)
            end)

            it("is left by an abort, an error and a read that fails", function()
                blocking:execute("RPUSH", name .. ":list", "x")
                own.call(function()
                    local kept
                    assert.same({n = 1}, table.pack(client:transaction({name}, function(tx)
                        kept = tx
                        tx:get(name)
                        tx:queue("SET", name, 1)
                        pcall(tx.abort, tx)
                    end)))
                    assert.error_matches(function() kept:get(name) end, "the transaction has ended")
                    local thrown = {}
                    assert.equal(thrown, select(2, pcall(client.transaction, client, {name},
                        function(tx)
                            tx:queue("SET", name, 1)
                            error(thrown)
                        end)))
                    assert.equal("WRONGTYPE", select(4, client:transaction({name}, function(tx)
                        tx:get(name .. ":list")
                    end)))
                    assert(client:transaction({name}, function(tx)
                        assert.is_false((pcall(tx.get, tx, name .. ":list")))
                    end))
                    assert.is_nil(client:execute("GET", name))
                end)
            end)

            it("is guarded by a lock", function()
                own.call(function()
                    local lock <close> = assert(client:hold(name, {ttl = 60}))
                    local function change() return "v" end
                    assert.equal("v", client:update(name .. ":k", change, {guard = lock}))
                    local other = client:lock(name)
                    assert.equal("NOT_OWNER",
                        select(3, client:update(name .. ":k", change, {guard = other})))
                end)
            end)

            it("may have another one inside", function()
                own.call(function()
                    assert(client:transaction({name}, function(tx)
                        assert.equal("1", client:update(name .. ":in", function() return 1 end))
                        tx:queue("SET", name, tx:get(name .. ":in"))
                    end))
                    assert.equal("1", client:execute("GET", name))
                end)
            end)

            it("waits for as many others as have the connections", function()
                for _, connections in ipairs {1, 3} do
                    connect {connections = connections}
                    local now, most = 0, 0
                    for i = 1, 6 do
                        own.spawn(function()
                            assert(client:update(name .. i, function()
                                now = now + 1
                                most = math.max(most, now)
                                repeat
                                    own.sleep(0.01)
                                until most >= connections
                                now = now - 1
                                return i
                            end))
                        end)
                    end
                    own.run()
                    assert.equal(connections, most)
                    assert.equal(connections, loops.count_connections(client_name))
                end
            end)

            it("passes its place on when it is closed", function()
                local threads = {}
                local function sit()
                    client:transaction({name}, function(tx)
                        tx:get(name)
                        own.stay()
                    end)
                end
                for i = 1, 3 do
                    threads[i] = own.spawn(sit)
                end
                own.spawn(function()
                    own.sleep(0.01)
                    for _, thread in ipairs(threads) do
                        assert(coroutine.close(thread))
                    end
                    assert.equal("1", client:update(name, function() return 1 end))
                end)
                own.run()
                assert.equal(1, loops.count_connections(client_name))
            end)
        end)

        it("a value is compared and set", function()
            own.call(function()
                assert.is_true(client:compare_and_set(name, nil, 1))
                assert.is_false(client:compare_and_set(name, 2.5, 3))
                assert.is_true(client:compare_and_set(name, 1, 2.5, {ttl = 60}))
                assert.is_true(client:execute("PTTL", name) > 50000)
                assert.equal("2.5", client:update(name, function() return sneck.KEEP end))
                assert.is_false(client:compare_and_delete(name, 1))
                assert.is_true(client:compare_and_delete(name, 2.5))
                assert.is_nil(client:update(name, function(old) return old end))
                assert.equal("3", client:update(name, function() return 3.0 end))
                assert.error_matches(function() client:update(name, function() return {} end) end,
                    "must return a string")
            end)
        end)

        it("connections that were killed are made anew", function()
            own.call(function()
                for _ = 1, 20 do
                    assert(client:execute("PING"))
                    kill_connections(client_name)
                end
            end)
            support.take(blocking, name)
            local lock = client:lock(name, {ttl = 60})
            own.spawn(function() assert(lock:acquire()) end)
            own.spawn(function()
                for _ = 1, 20 do
                    repeat
                        client:execute("PING")
                    until #assert(blocking:waiters(name)) > 0
                    kill_connections(client_name)
                    own.sleep(0.002)
                end
                blocking:force_release(name)
            end)
            own.run()
            assert.is_true(lock:owned())
        end)

        it("a client that is closed ends what waits", function()
            support.take(blocking, name)
            local codes = {}
            for _ = 1, 3 do
                own.spawn(function()
                    local code = select(3, client:lock(name):acquire())
                    codes[#codes + 1] = code
                end)
            end
            own.spawn(function()
                repeat until #assert(client:waiters(name)) == 3
                client:close()
            end)
            own.run()
            assert.same({"INTERRUPTED", "INTERRUPTED", "INTERRUPTED"}, codes)
            assert.same({}, blocking:waiters(name))
            assert.equal(0, loops.count_connections(client_name))
            own.call(function()
                assert.equal("INVALID", select(3, client:execute("PING")))
                assert.equal("INVALID", select(3, client:lock(name):acquire()))
                assert.equal("INVALID", select(3, client:update(name, error)))
            end)
            client:close()
        end)

        it("misuse of a transaction is told before it queues", function()
            own.spawn(function()
                local told = false
                assert(client:transaction({name}, function(tx)
                    own.spawn(function()
                        local stranger = assert(async.connect(own.loop, support.url)):lock(name)
                        support.refused("key 1 must be", function()
                            client:transaction({1}, error)
                        end)
                        support.refused("attempts must be", function()
                            client:update(name, error, {attempts = 0})
                        end)
                        support.refused("transaction: .*guard", function()
                            client:transaction({name}, error, {guard = stranger})
                        end)
                        told = true
                    end)
                    for _ = 1, 1000 do
                        tx:get(name)
                    end
                    assert.is_true(told)
                end))
            end)
            own.run()
        end)

        it("a client that is closed ends transactions, and those that queue for them", function()
            local codes, started = {}, 0
            local function note(...)
                codes[#codes + 1] = select(3, ...) or false
            end
            own.spawn(function()
                note(client:transaction({name}, function(tx)
                    tx:queue("SET", name, "never written")
                    started = started + 1
                    while true do
                        tx:get(name)
                    end
                end))
            end)
            for _, call in ipairs {
                function() return client:update(name, error) end,
                function() return client:transaction({name}, error) end,
                function() return client:compare_and_set(name, nil, 1) end,
                function() return client:compare_and_delete(name, 1) end,
            } do
                own.spawn(function()
                    while started == 0 do
                        own.sleep(0.001)
                    end
                    started = started + 1
                    note(call())
                end)
            end
            own.spawn(function()
                while started < 5 do
                    own.sleep(0.001)
                end
                client:close()
                note(client:update(name, error))
            end)
            own.run()
            table.sort(codes)
            assert.same({"INTERRUPTED", "INTERRUPTED", "INTERRUPTED", "INTERRUPTED",
                "INTERRUPTED", "INVALID"}, codes)
            assert.is_nil(blocking:execute("GET", name))
            assert.equal(0, loops.count_connections(client_name))
        end)

        it("a client that is closed between two steps of a transaction ends it", function()
            local function read(tx) tx:get(name) end
            local function write(tx) tx:queue("SET", name, "never written") end
            local function close() client:close() end
            for _, steps in ipairs {{read, close, read}, {read, close, write}, {close, read},
                    {close, write}} do
                connect()
                own.call(function()
                    local code = select(3, client:transaction({name}, function(tx)
                        for _, step in ipairs(steps) do
                            step(tx)
                        end
                    end))
                    assert.equal("INTERRUPTED", code)
                end)
            end
            assert.is_nil(blocking:execute("GET", name))
        end)

        it("misuse is an error", function()
            local function misuse(pattern, method, ...)
                local arguments = table.pack(...)
                support.refused(pattern, function()
                    client[method](client, table.unpack(arguments, 1, arguments.n))
                end)
            end
            own.call(function()
                misuse("ttl must be", "lock", name, {ttl = -1})
                misuse("unknown option tll", "hold", name, {tll = 1})
                misuse("the token must be", "adopt", name, nil)
                misuse("keys must be a list", "transaction", {name, [3] = name}, error)
                misuse("the body must be", "with_lock", name, nil, 1)
                misuse("there is no command", "execute")
                misuse("the name must be", "waiters", 5)
                misuse("keys must be a table", "transaction", name, error)
                misuse("key 1 must be", "transaction", {1}, error)
                misuse("the function must be", "transaction", {}, 1)
                misuse("attempts must be", "update", name, error, {attempts = 0})
                misuse("guard must be a lock", "update", name, error, {guard = {}})
                misuse("ttl must be", "update", name, error, {ttl = 0})
                misuse("the key must be", "update", 5, error)
                misuse("the expected value must be", "compare_and_set", name, {}, 1)
                misuse("the expected value must be", "compare_and_delete", name, nil)
                local lock = client:lock(name)
                support.refused("wait must be", function() lock:acquire(-1) end)
                support.refused("ttl must be", function() lock:extend(0) end)
            end)
            assert.equal("INVALID", select(3, async.connect(own.loop, "nonsense://")))
            support.refused("unknown option tll", function()
                async.connect(own.loop, nil, {tll = 1})
            end)
            support.refused("connections must be", function()
                async.connect(own.loop, nil, {connections = 0})
            end)
            assert.error_matches(function() async.connect("unix:///x") end, "needs a loop first")
        end)

        it("calls outside of a coroutine are an error", function()
            for _, call in ipairs {
                function() client:execute("PING") end,
                function() client:lock(name):acquire() end,
                function() client:hold(name) end,
                function() client:update(name, error) end,
                function() client:transaction({}, error) end,
            } do
                support.refused("call this inside of a coroutine", call)
            end
        end)
    end)
end

describe("a client", function()
    for _, loop_name in ipairs {"plain", "cqueues"} do
        it("belongs to one loop of " .. loop_name, function()
            local one, client = loops.start(loop_name)
            local other = loops.make(loop_name)
            assert.equal("PONG", one.call(client.execute, client, "PING"))
            assert.error_matches(function() other.call(client.execute, client, "PING") end, "loop")
        end)
    end
end)
