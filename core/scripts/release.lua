-- Delete the lock if it holds our token. KEYS[1] the lock; ARGV[1] our token.
-- Returns 1 when deleted; 0 when another holds it; -1 when nobody does.
-- Errors are passed on as the server words them.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] then
return redis.pcall('DEL', KEYS[1])
end
if type(held) == 'table' then
return held
end
return held and 0 or -1
