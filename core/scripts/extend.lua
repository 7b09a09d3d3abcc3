-- Set the time that our lease has left; never create a key.
-- KEYS[1] the lock; ARGV[1] our token, ARGV[2] ttl in ms.
-- Returns 1 when extended; 0 when another holds the lock, -1 when nobody does.
-- Errors are passed on as the server words them.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
    return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
end
if type(held) == 'table' then
    return held
end
return held and 0 or -1
