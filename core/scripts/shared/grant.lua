-- Give the lock to the first waiter that lives, and tell it. Shared by scripts.
-- KEYS[1] the lock, KEYS[2] the queue, KEYS[3] when its waiters were last seen.
-- The key and the queue change before the grant is published. Dead waiters (no
-- subscriber on their inbox) are dropped; `own` is passed over: it is who asks.
-- A waiter not seen for 4 s may be frozen: it gets 1 s to claim the lock.
-- Returns the new holder's token; nil when nobody waits (or 128 were dead);
-- false when publishing is denied: then the lock is given to nobody.
local function grant(own)
for _ = 1, 128 do
local head = redis.pcall('ZPOPMIN', KEYS[2])
local member, since = head[1], head[2]
if not member then
return nil
end
local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')
if token ~= own and (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local waited = math.max(now - since, 0)
if waited > 4000000 then
local seen = redis.call('HGET', KEYS[3], token)
redis.call('HDEL', KEYS[3], token)
if not seen or now - seen > 4000000 then
ttl = math.min(ttl, 1000)
end
end
redis.call('SET', KEYS[1], token, 'PX', ttl)
local grant = string.format('%s %.0f %d', token, waited / 1000, ttl)
if type(redis.pcall('PUBLISH', inbox, grant)) == 'table' then
redis.call('DEL', KEYS[1])
return false
end
return token
end
end
end
