-- A lock on several servers is the same lock; what is Lua's own about it.
local async = require "sneck.async"
local leases = require "leases"
local sneck = require "sneck"
local support = require "support"

local LONG = leases.LONG -- a server has a twentieth of it to answer, but no more than a second

local urls = {}
for url in assert(os.getenv("SNECK_TEST_URLS"), "run by tests/lua/test_lua.py"):gmatch("%S+") do
    urls[#urls + 1] = url
end

local client, name

-- The token that each server has.
local function tokens()
    local found = {}
    for i, url in ipairs(urls) do
        local one <close> = assert(sneck.connect(url, support.patient()))
        found[i] = one:execute("GET", name) or "none"
    end
    return found
end

local function count(token)
    local n = 0
    for _, found in ipairs(tokens()) do
        n = found == token and n + 1 or n
    end
    return n
end

-- A minority may hear of a release after the call has ended.
local function wait_until_none_is_left()
    leases.wait_until(function() return count("none") == 5 end)
end

-- So many of the servers, and others that are not there, five in all.
local function with_only(alive)
    local some = {}
    for i = 1, 5 do
        some[i] = i <= alive and urls[i] or ("unix:///nonexistent/%d"):format(i)
    end
    return assert(sneck.quorum(some))
end

local REFUSED = "[^\n]*quorum[^\n]*$" -- in one line

-- What a quorum's client, of either kind, refuses.
local function refused_by(several)
    return {
        execute = function() several:execute("PING") end,
        update = function() several:update(name, support.add_one) end,
        set = function() several:compare_and_set(name, nil, "v") end,
        delete = function() several:compare_and_delete(name, "v") end,
        reads = function() several:transaction({}, function() end) end,
        writes = function()
            several:transaction({name}, function(tx) tx:queue("SET", name, "v") end)
        end,
        try_lock = function() several:try_lock(name, "v", 60000) end,
        release_lock = function() several:release_lock(name, "v") end,
        legacy_lock = function() several:legacy_lock(name) end,
        fair = function() several:lock(name, {fair = true}) end,
        fair_hold = function() several:hold(name, {fair = true}) end,
        fair_rlock = function() several:rlock(name, {fair = true}) end,
        fair_with_lock = function() several:with_lock(name, {fair = true}, error) end,
        fair_adopt = function() several:adopt(name, "token", {fair = true}) end,
    }
end

before_each(function()
    client = assert(sneck.quorum(urls, {timeout = 5}))
    name = support.name()
end)

describe("a quorum's lock", function()
    it("is held on a majority of the servers until its block ends", function()
        do
            local lock <close> = assert(client:hold(name, {ttl = LONG}))
            assert.is_true(count(lock:token()) >= 3)
            assert.equal("BUSY", (select(3, client:lock(name, {ttl = LONG}):acquire(0))))
        end
        wait_until_none_is_left()
    end)

    it("is held around a function", function()
        assert.is_true(client:with_lock(name, {ttl = LONG}, function(lock)
            return count(lock:token()) >= 3
        end))
        wait_until_none_is_left()
    end)

    it("is renewed", function()
        local lock <close> = assert(client:hold(name, {ttl = LONG}))
        assert(lock:extend(leases.LESS))
        leases.wait_until(function() return lock:remaining() > leases.LESS end)
        assert.is_true(count(lock:token()) >= 3)
    end)

    it("has fences that increase", function()
        local lock = client:lock(name, {ttl = LONG, fence = true})
        local last = 0
        for _ = 1, 3 do
            assert(lock:acquire())
            assert.is_true(lock:fence() > last)
            last = lock:fence()
            assert(lock:release())
        end
    end)

    it("can be adopted, and taken again by its coroutine", function()
        local first = client:lock(name, {ttl = LONG})
        assert(first:acquire())
        assert(client:adopt(name, first:token()):release())
        local again = client:rlock(name, {ttl = LONG})
        assert(again:acquire() and again:acquire() and again:release() and again:release())
        wait_until_none_is_left()
    end)

    it("tells its holder, and can be taken away", function()
        local lock = client:lock(name, {ttl = LONG, label = "me"})
        assert(lock:acquire())
        assert.equal("me", client:lock(name):holder().label)
        assert.is_true(client:force_release(name))
        assert.equal("NOT_OWNER", (select(3, lock:release())))
    end)

    it("is driven by ops as well", function()
        local op = client:lock(name, {ttl = LONG}):acquire_start()
        repeat
            local ended = op:step()
        until ended
        assert.is_true(op:result())
        assert.is_true(#client:lock(name):release_start():fds() <= 10)
    end)
end)

describe("a quorum with servers that are down", function()
    it("goes on without a minority", function()
        local lock <close> = assert(with_only(3):hold(name, {ttl = LONG}))
        assert.equal(3, count(lock:token()))
    end)

    it("tells by the fifth value what each of them said", function()
        local some = with_only(2)
        local result = table.pack(some:lock(name, {ttl = LONG}):acquire(0))
        assert.same({n = 5, nil, result[2], "QUORUM", nil, result[5]}, result)
        assert.matches(name:gsub("%p", "%%%0"), result[2])
        local said = 0
        for address, message in pairs(result[5].servers) do
            assert.matches("^/nonexistent/[345]$", address)
            assert.is_true(#message > 0 and not message:find("\n"))
            said = said + 1
        end
        assert.equal(3, said)
        wait_until_none_is_left()
    end)

    it("tells it from ops, hold, with_lock and force_release, too", function()
        local some = with_only(2)
        local function check(...)
            assert.equal("QUORUM", (select(3, ...)))
            assert.is_table(select(5, ...).servers)
        end
        check(some:lock(name, {wait = 0}):acquire_start():wait())
        check(some:hold(name, {wait = 0}))
        check(some:with_lock(name, {wait = 0}, error))
        check(some:force_release(name))
        check(some:lock(name):holder())
        check(some:lock(name):locked())
    end)
end)

describe("a quorum's client", function()
    it("has nothing else than locks", function()
        for _, call in pairs(refused_by(client)) do
            support.refused(REFUSED, call)
        end
        for _, method in ipairs {"execute_start", "try_lock_start", "release_lock_start"} do
            support.refused(REFUSED, function() client[method](client, name, "v", 1000) end)
        end
        assert.same({}, client:waiters(name))
        wait_until_none_is_left()
    end)

    it("refuses the rest before it asks any server", function()
        local nowhere = assert(sneck.quorum({"unix:///none/a", "unix:///none/b"}))
        for _, call in pairs(refused_by(nowhere)) do
            support.refused(REFUSED, call)
        end
        assert.equal("untried", nowhere:stats().wakeups)
    end)

    it("refuses it when it is closed, too", function()
        client:close()
        for _, call in pairs(refused_by(client)) do
            assert.is_false((pcall(call)))
        end
        assert.equal("INVALID", (select(3, client:lock(name):acquire())))
    end)

    it("gives no lock that can be a guard", function()
        local one <close> = assert(sneck.connect(urls[1], support.patient()))
        do
            local lock <close> = assert(client:hold(name, {ttl = LONG}))
            support.refused("transaction: the guard is a quorum's lock", function()
                one:update("written", support.add_one, {guard = lock})
            end)
        end
        assert.equal(0, one:execute("EXISTS", "written"))
        wait_until_none_is_left()
    end)

    it("has the addresses of its servers", function()
        local made = assert(sneck.quorum({"redis://:secret@one:1", "unix:///a/b"}))
        assert.same({"one:1", "/a/b"}, made:servers())
        assert.same({"one:6379"}, assert(sneck.connect("redis://one")):servers())
    end)

    it("is refused with wrong urls", function()
        local many = {}
        for i = 1, 16 do
            many[i] = "redis://localhost:" .. i
        end
        for _, wrong in ipairs {{}, many, {"redis://a", "redis://a/1"}, {"http://a"}} do
            assert.equal("INVALID", (select(3, sneck.quorum(wrong))))
        end
    end)

    it("throws for misuse", function()
        support.refused("the urls must be a table, not string", function()
            sneck.quorum("redis://localhost")
        end)
        support.refused("the urls must be a table, not n", function() sneck.quorum() end)
        support.refused("a url must be", function() sneck.quorum({{}}) end)
        support.refused("a url must be", function() sneck.quorum({urls[1], nil, urls[3]}) end)
        support.refused("the urls must be a list", function()
            sneck.quorum({urls[1], [3] = urls[3]})
        end)
        support.refused("unknown option", function() sneck.quorum(urls, {tll = 5}) end)
        support.refused("timeout", function() sneck.quorum(urls, {timeout = 0}) end)
    end)
end)

describe("a quorum's lock in coroutines", function()
    local function run(main)
        local loop = async.loop()
        local ended = false
        loop:spawn(function()
            main(loop)
            ended = true
        end)
        loop:run()
        assert.is_true(ended)
    end

    it("is held by one at a time", function()
        run(function(loop)
            local coroutines = assert(async.quorum(loop, urls))
            local inside, done = 0, 0
            for _ = 1, 5 do
                loop:spawn(function()
                    local lock <close> = assert(coroutines:hold(name, {ttl = LONG, poll = 0.002}))
                    assert.equal(0, inside)
                    inside = inside + 1
                    loop:sleep(0.001)
                    assert.is_true(lock:owned())
                    inside, done = inside - 1, done + 1
                end)
            end
            while done < 5 do
                loop:sleep(0.005)
            end
        end)
        wait_until_none_is_left()
    end)

    it("is all that they have: the rest is refused before any server is asked", function()
        run(function(loop)
            local nowhere = {"unix:///none/a", "unix:///none/b"}
            for _, those in ipairs {nowhere, urls} do
                local coroutines = assert(async.quorum(loop, those))
                for _, call in pairs(refused_by(coroutines)) do
                    support.refused(REFUSED, call)
                end
                assert.same({}, coroutines:waiters(name))
            end
        end)
        assert.equal(5, count("none"))
    end)

    it("tells what each server said", function()
        run(function(loop)
            local nowhere = {urls[1], "unix:///none/a", "unix:///none/b"}
            local coroutines = assert(async.quorum(loop, nowhere))
            local _, _, code, _, details = coroutines:lock(name):acquire(0)
            assert.equal("QUORUM", code)
            assert.is_string(details.servers["/none/a"])
            assert.equal(3, #coroutines:servers())
        end)
    end)

    -- The codes and details of every call, of either kind of client; two of three are down.
    local function failures(several)
        local lock, failed = several:lock(name), {}
        for call, results in pairs {
            acquire = table.pack(lock:acquire(0)),
            hold = table.pack(several:hold(name, {wait = 0})),
            lock_hold = table.pack(lock:hold(0)),
            rlock = table.pack(several:rlock(name):acquire(0)),
            with_lock = table.pack(several:with_lock(name, {wait = 0}, error)),
            release = table.pack(several:adopt(name, "token"):release()),
            extend = table.pack(several:adopt(name, "token"):extend()),
            adopted_hold = table.pack(several:adopt(name, "token"):hold()),
            holder = table.pack(lock:holder()),
            locked = table.pack(lock:locked()),
            force_release = table.pack(several:force_release(name)),
        } do
            local details = results[5]
            failed[call] = {results[3], details and details.servers["/none/a"] or false}
        end
        return failed
    end

    it("tells with each call what each server said, as the calls that block do", function()
        local nowhere = {urls[1], "unix:///none/a", "unix:///none/b"}
        local blocking = failures(assert(sneck.quorum(nowhere)))
        run(function(loop)
            assert.same(blocking, failures(assert(async.quorum(loop, nowhere))))
        end)
        for _, call in ipairs {"acquire", "hold", "lock_hold", "rlock", "with_lock"} do
            assert.equal("QUORUM", blocking[call][1])
            assert.is_string(blocking[call][2])
        end
    end)

    it("leaves no token when one that waits is closed", function()
        run(function(loop)
            local coroutines = assert(async.quorum(loop, urls))
            local held = coroutines:lock(name, {ttl = LONG})
            assert(held:acquire())
            local waiting = loop:spawn(function()
                coroutines:lock(name, {ttl = LONG, poll = 0.002}):acquire()
            end)
            loop:sleep(0.02)
            coroutine.close(waiting)
            assert(held:release())
            assert(coroutines:lock(name, {ttl = LONG}):acquire(leases.LIMIT))
            assert(coroutines:force_release(name))
        end)
        wait_until_none_is_left()
    end)

    it("is refused without a loop, and with wrong urls", function()
        support.refused("quorum%(%) needs a loop first", function() async.quorum(urls) end)
        assert.equal("INVALID", (select(3, async.quorum(async.loop(), {}))))
    end)
end)
