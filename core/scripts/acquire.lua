-- Acquire the lock, or wait in its queue, or tell who holds it.
-- KEYS[1] the lock, KEYS[2] the queue; KEYS[3] the last fence, where one is wanted.
-- ARGV[1] our token, ARGV[2] ttl in ms; ARGV[3] our entry in the queue, or '' not
-- to wait; ARGV[4] an entry of ours that this one replaces, or '' for none;
-- ARGV[5] '1' when we have been in the queue already; ARGV[6] what the key is to hold
-- when it is ours, where that is not our token: then the lock is handed to us by our token.
-- Returns 1, or our fence, when it is ours now (also when it was: a repeat is harmless,
-- and starts the lease anew), else {PTTL in ms or -1, the holder's token, cut, and how
-- many wait before us, -1 when we do not}; to who has just joined a long queue, and
-- will ask again before any of it matters, only 0.
-- A free lock goes to whoever waits first. Errors are passed on as the server
-- words them, such as WRONGTYPE when the key is not a lock: servers before 7.0
-- would wrap an error that is raised.
-- include shared/grant.lua
local token, ttl, entry, former = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return held
end
if not held then
    local queue = redis.pcall('ZRANGE', KEYS[2], 0, 0)
    if queue.err then
        return queue
    end
    local head = queue[1]
    if not head or head == entry or head == former then
        held = token
    else
        held = grant(token, true) or token
    end
end
local ours = 1
if held == token then
    ours = KEYS[3] and next_fence() or 1
    if type(ours) == 'table' then
        return ours
    end
    local set = redis.pcall('SET', KEYS[1], ARGV[6] or token, 'PX', ttl)
    if set.err then
        return set
    end
end
local since
if former ~= '' then
    since = redis.call('ZSCORE', KEYS[2], former)
    redis.call('ZREM', KEYS[2], former)
end
if entry == '' or held == token then
    if ARGV[5] == '1' then
        redis.call('ZREM', KEYS[2], entry)
    end
    return held == token and ours or {redis.call('PTTL', KEYS[1]), held:sub(1, 256), -1}
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local added = redis.pcall('ZADD', KEYS[2], 'NX', since or now, entry)
if type(added) == 'table' then
    return added
end
local rank
if ARGV[5] == '1' then
    rank = redis.call('ZRANK', KEYS[2], entry)
else
    rank = redis.call('ZCARD', KEYS[2]) - 1
end
-- in a long queue one joiner in eight is enough to keep it alive
if rank < 3 or ARGV[5] == '1' or now % 8 == 0 then
    redis.call('PEXPIRE', KEYS[2], 60000)
end
if rank >= 3 and ARGV[5] == '0' then
    return 0
end
return {redis.call('PTTL', KEYS[1]), held:sub(1, 256), rank}
