-- Take the lock away from whoever holds it, and hand it to who waits first.
-- KEYS[1] the lock, KEYS[2] the queue; KEYS[3] the last fence, where it is known.
-- Returns 1 when it was held, 0 when it was free. Errors are passed on as the
-- server words them.
-- include shared/grant.lua
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return held
end
if held and not grant('') then
    redis.call('DEL', KEYS[1])
end
return held and 1 or 0
