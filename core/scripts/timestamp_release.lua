-- Release a timestamp lock, if it is held with our token and its time is still the one
-- that we wrote.
-- KEYS[1] the lock, KEYS[2] who wrote it; ARGV[1] our token.
-- Returns 1 when deleted; 0 when another holds it; -1 when nobody does, also where
-- our time is over; -2 when another client has written a time over ours. Errors are
-- passed on as the server words them.
-- include shared/timestamp.lua
if type(held) == 'table' then
    return held
end
if free() then
    return -1
end
if is_held_by(ARGV[1]) then
    redis.call('DEL', KEYS[1], KEYS[2])
    return 1
end
return is_moved(ARGV[1]) and -2 or 0
