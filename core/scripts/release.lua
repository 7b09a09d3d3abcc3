-- Release the lock if it holds our token, and hand it to who waits first.
-- KEYS[1] the lock, KEYS[2] the queue; KEYS[3] the last fence, where it is known.
-- ARGV[1] our token; ARGV[2] an entry of ours to take out of the queue, or ''; ARGV[3]
-- our link's inbox and the time by our clock, where that is open.
-- Returns 1 when deleted; 2 when handed on; 3 when deleted because publishing is
-- denied; 0 when another holds it; -1 when nobody does. Errors are passed on as
-- the server words them.
-- include shared/grant.lua
local held = redis.pcall('GET', KEYS[1])
if ARGV[2] ~= '' then
    redis.pcall('ZREM', KEYS[2], ARGV[2])
end
if held == ARGV[1] then
    local granted = grant(held, false, ARGV[3])
    if granted then
        return 2
    end
    redis.call('DEL', KEYS[1])
    return granted == nil and 1 or 3
end
if type(held) == 'table' then
    return held
end
return held and 0 or -1
