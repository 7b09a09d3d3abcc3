-- Set the time that our lease has left; never create a key.
-- KEYS[1] the lock; ARGV[1] our token, ARGV[2] ttl in ms.
-- Returns 1 when extended, 0 when the lock is not ours.
-- Errors are passed on as the server words them.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
    return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])
end
return type(held) == 'table' and held or 0
