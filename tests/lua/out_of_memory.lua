-- out_of_memory.lua URL NAME: every call of the API once.
--
-- Run by out_of_memory.c with allocations that fail. So an error is let through,
-- unless it is one that the script wants and can tell from a lack of memory.
local sneck = require "sneck"

local url, name = ...

local function use_client(client)
    assert(client:execute("SET", name .. ":key", 1.5, "PX", 60000) == "OK")
    assert(client:execute("MGET", name .. ":key", name .. ":none").n == 2)
    client:execute("EVAL", "return {1, {'two', redis.error_reply('ERR x')}}", 0)
    local _, _, code = client:execute("LPUSH", name .. ":key", "x")
    assert(code == "SERVER")
    client:execute_start("PING"):wait()
    tostring(client)
end

local function use_lock(lock)
    assert(lock:acquire())
    assert(lock:extend(30))
    assert(lock:holder().token == lock:token())
    assert(lock:locked() and lock:owned() and lock:remaining() > 0 and lock:ttl() == 60)
    assert(lock:name() == name and tostring(lock))
    assert(lock:release())
    assert(lock:holder() == nil)
end

local function use_adopted(client)
    local token = ("t"):rep(1000)
    assert(client:execute("SET", name, token, "PX", 60000) == "OK")
    local lock = client:adopt(name, token, {ttl = 60})
    assert(#lock:token() == 1000)
    assert(lock:release())
end

local function use_queue(client, lock)
    local queue = ("{%s}:sneck:queue"):format(name)
    local entry = "sneck:host:7:label:" .. ("0"):rep(32) .. " inbox 1000"
    assert(lock:acquire())
    assert(#client:waiters(name) == 0)
    assert(client:execute("ZADD", queue, 0, entry))
    assert(client:waiters(name)[1].label == "label")
    assert(client:waiters_start(name):wait()[1].pid == 7)
    assert(client:force_release(name) == true) -- whoever waited is not there any more
    assert(client:force_release_start(name):wait() == false)
    assert(select(3, lock:release()) == "NOT_OWNER")
    assert(client:execute("HSET", queue, "field", "value"))
    assert(select(3, client:waiters(name)) == "SERVER")
    assert(client:execute("DEL", queue))
    assert(client:lock(name, {fair = true, poll = 1}):ttl() == 10)
    assert(client:stats().losses > 0)
end

local function use_ops(client, lock)
    local op = lock:acquire_start(5)
    while not op:step() do
        op:fds()
        op:timeout()
    end
    assert(op:result() and op:result())
    assert(lock:extend_start():wait())
    assert(lock:holder_start():wait().foreign == false)
    local waiting = client:lock(name, {wait = 60}):acquire_start()
    tostring(waiting)
    waiting:step()
    waiting:cancel()
    assert(select(3, waiting:result()) == "INTERRUPTED")
    client:lock(name):acquire_start():step() -- left to the collector
    assert(lock:release_start():wait())
end

local function use_blocks(client)
    do
        local held <close> = assert(client:hold(name, {ttl = 60, label = "held"}))
        assert(select(3, client:hold(name, {wait = 0})) == "BUSY")
        assert(held:owned())
    end
    assert(client:with_lock(name, {ttl = 60}, function(lock)
        return lock:owned()
    end))
end

local function use_leases(client)
    local lock = client:lock(name, {
        ttl = 60, label = "l", renew = false, max_hold = 60, fence = true,
    })
    do
        local held <close> = assert(lock:clone():hold(60))
        assert(held:fence() > 0 and held:lease() == "held" and not held:lost())
        assert(held:keep_alive() and held:keep_alive(false))
        local adopted = client:adopt(name, held:token(), {ttl = 60})
        assert(adopted:hold():owned())
    end
    assert(select(3, lock:keep_alive()) == "NOT_OWNER")
    assert(select(3, lock:clone():release()) == "NOT_OWNER")
end

local function use_reentrant(client)
    local lock = client:rlock(name, {ttl = 60, wait = 0})
    do
        local _ <close> = assert(lock:hold())
        assert(lock:acquire() and lock:extend() and lock:release())
        assert(coroutine.wrap(function() return select(3, lock:acquire()) end)() == "BUSY")
        assert(lock:owned() and tostring(lock:clone()))
    end
    assert(select(3, lock:release()) == "NOT_OWNER")
    assert(lock:acquire()) -- left to the collector
    assert(client:force_release(name))
end

local function use_update(client)
    local key = name .. ":updated"
    local function add(old)
        return tonumber(old or 0) + 1.5
    end
    client:execute("DEL", key)
    assert(client:update(key, add, {ttl = 60, attempts = 2, wait = 60}) == "1.5")
    assert(client:update(key, function() return sneck.KEEP end) == "1.5")
    assert(client:compare_and_set(key, 1.5, 2, {ttl = 60}))
    assert(client:compare_and_delete(key, 3) == false)
    local long = ("v"):rep(1000)
    assert(client:update(key, function() return long end) == long)
    local _, _, code, _, details = client:update(key, function(old)
        client:execute("SET", key, "theirs")
        return old .. old
    end, {attempts = 1})
    assert(code == "CONFLICT" and details.attempts == 1 and details.keys[1] == key)
    assert(client:update(key, function() end) == nil)
end

local function use_guarded(client, lock)
    local key, list, runs = name .. ":a", name .. ":list", 0
    assert(lock:acquire())
    client:execute("DEL", key, list)
    client:execute("RPUSH", list, "x")
    local results = client:transaction({key, list}, function(tx)
        runs = runs + 1
        tx:watch(name .. ":b", name .. ":c")
        assert(tx:get(key) == nil and tx:execute("LRANGE", list, 0, -1).n == 1)
        if tx:conflicts() == 0 then
            client:execute("INCR", name .. ":c")
        end
        tx:queue("EVAL", "return {1, {'two'}}", 0)
        tx:queue("SET", key, 1.5, "PX", 60000)
        tostring(tx)
    end, {guard = lock, attempts = 2})
    assert(results.n == 2 and results[1][2][1] == "two" and runs == 2)
    assert(lock:release())
end

local function use_failing(client)
    local list, thrown = name .. ":list", {}
    local ok, err = pcall(client.transaction, client, {}, function() error(thrown) end)
    assert(not ok)
    if err ~= thrown then -- out of memory
        error(err, 0)
    end
    assert(client:transaction({list}, function(tx) tx:abort() end) == nil)
    local _, _, code, word = client:transaction({list}, function(tx) tx:get(list) end)
    assert(code == "SERVER" and word == "WRONGTYPE")
    local _, _, _, _, failed = client:transaction({}, function(tx)
        tx:queue("INCR", list)
        tx:queue("DEL", list, name .. ":c")
    end)
    assert(failed.index == 1 and failed.results[1].err and failed.results[2] == 2)
    assert(select(3, client:transaction({}, function(tx) tx:queue("MULTI") end)) == "INVALID")
    assert(client:transaction({}, tostring).n == 0)
end

local function use_quorum()
    local alone <close> = assert(sneck.quorum({url}, {timeout = 20, label = "oom"}))
    assert(alone:with_lock(name, {ttl = 60}, function(lock)
        return lock:owned()
    end))
    local failing <close> = assert(sneck.quorum({url, "unix:///none/a", "unix:///none/b"}))
    local lock = failing:lock(name, {wait = 0})
    local function ask()
        return lock:holder_start():wait()
    end
    for _, call in ipairs({lock.acquire, lock.hold, ask}) do
        local _, _, code, _, details = call(lock)
        assert(code == "QUORUM" and details.servers["/none/a"])
    end
    assert(#failing:servers() == 3)
    assert(select(3, sneck.quorum({url, url})) == "INVALID")
end

assert(select(3, sneck.connect("nonsense://")) == "INVALID")
local client <close> = assert(sneck.connect(url, {
    timeout = 20, connect_timeout = 20, client_name = "oom", prefix = "", label = "oom",
}))
local lock = client:lock(name, {ttl = 60, wait = 60, label = "lock"})
use_client(client)
use_lock(lock)
use_adopted(client)
use_queue(client, lock)
use_ops(client, lock)
use_blocks(client)
use_leases(client)
use_reentrant(client)
use_update(client)
use_guarded(client, lock)
use_failing(client)
use_quorum()
