-- Acquire the lock, or tell who holds it and for how long.
-- KEYS[1] the lock; ARGV[1] our token, ARGV[2] ttl in ms.
-- Returns 1 when it is ours now (also when it was: a repeat is harmless, and
-- starts the lease anew), else {PTTL in ms or -1, the holder's token, cut}.
-- Errors are passed on as the server words them, such as WRONGTYPE when the key
-- is not a lock: servers before 7.0 would wrap an error that is raised.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
return held
end
if held and held ~= ARGV[1] then
return {redis.call('PTTL', KEYS[1]), held:sub(1, 256)}
end
local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return set.err and set or 1
