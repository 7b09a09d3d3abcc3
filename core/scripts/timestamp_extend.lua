-- Set the time that our lease of a timestamp lock has left; never create a key.
-- KEYS[1] the lock, KEYS[2] who wrote it; ARGV[1] our token, ARGV[2] ttl in ms.
-- Returns 1 when extended; 0 when the lock is not ours; -2 when another client has
-- written a time over ours. Errors are passed on as the server words them.
-- include shared/timestamp.lua
if type(held) == 'table' then
    return held
end
if is_held_by(ARGV[1]) then
    return write(ARGV[1], ARGV[2])
end
return is_moved(ARGV[1]) and -2 or 0
