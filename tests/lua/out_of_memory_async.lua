-- out_of_memory_async.lua URL NAME: what sneck.async does, in coroutines, once.
--
-- Run by out_of_memory.c with allocations that fail. So an error is let through, unless it is
-- one that the script wants and can tell from a lack of memory.
local async = require "sneck.async"

local url, name = ...
name = "async:" .. name -- what the other script has left under its names is not ours
local loop = async.loop()
local client <close> = assert(async.connect(loop, url, {
    timeout = 20, connect_timeout = 20, connections = 1,
}))

local function use_lock()
    local lock = client:lock(name, {ttl = 60, wait = 60})
    assert(lock:acquire())
    assert(lock:extend(30) and lock:owned() and lock:locked() and tostring(lock))
    assert(lock:holder().token == lock:token())
    assert(#client:waiters(name) == 0)
    assert(lock:release())
    assert(client:force_release(name) == false)
    assert(client:with_lock(name, {ttl = 60}, function() return client:execute("PING") end))
end

local function use_leases()
    local rlock = client:rlock(name, {ttl = 60, wait = 60, fence = true})
    do
        local held <close> = assert(rlock:hold())
        assert(rlock:acquire() and rlock:extend() and rlock:release())
        assert(held:keep_alive() and held:fence() > 0 and held:lease() == "held")
        assert(client:adopt(name, held:token(), {ttl = 60}):hold():owned())
    end
    assert(select(3, rlock:clone():release()) == "NOT_OWNER")
end

local function wait_and_be_closed()
    local held <close> = assert(client:hold(name, {ttl = 60}))
    for _, kind in ipairs {"lock", "rlock"} do
        local lock = client[kind](client, name)
        local waiting = loop:spawn(function() lock:acquire() end)
        repeat until #assert(client:waiters(name)) > 0
        coroutine.close(waiting)
        repeat until #assert(client:waiters(name)) == 0
    end
    assert(held:owned())
end

local function use_transactions()
    local key = name .. ":key"
    client:execute("DEL", key)
    local others = 0
    for _ = 1, 2 do
        loop:spawn(function()
            assert(client:update(key, function(old) return (old or 0) + 1 end))
            others = others + 1
        end)
    end
    repeat coroutine.yield() until others == 2
    assert(client:compare_and_set(key, 2, "x", {ttl = 60}))
    local _, _, _, _, failed = client:transaction({key}, function(tx)
        tx:watch(name .. ":other")
        assert(tx:get(key) == "x" and tx:conflicts() == 0)
        tx:queue("INCR", key)
        tx:queue("DEL", key)
    end)
    assert(failed.index == 1 and failed.results[1].err and failed.results[2] == 1)
    local _, _, code, _, conflict = client:transaction({key}, function(tx)
        tx:get(key)
        client:execute("INCR", key)
        tx:queue("DEL", key)
    end, {attempts = 1})
    assert(code == "CONFLICT" and conflict.keys[1] == key)
end

loop:spawn(function()
    use_lock()
    use_leases()
    wait_and_be_closed()
    use_transactions()
    loop:sleep(0)
end)
loop:run()
