-- Tell who holds the lock. KEYS[1] the lock.
-- Returns {token, PTTL}, or {nil, -2} when it is free.
-- Errors are passed on as the server words them.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return held
end
return {held, redis.call('PTTL', KEYS[1])}
