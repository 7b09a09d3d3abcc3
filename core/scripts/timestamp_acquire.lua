-- Acquire a timestamp lock that is free, or tell who holds it: then nothing is written.
-- KEYS[1] the lock, KEYS[2] who wrote it; ARGV[1] our token, ARGV[2] ttl in ms; ARGV[6]
-- 'ms' to write milliseconds, else the unit that the key had, or seconds.
-- Returns 1 when it is ours now (also when it was: a repeat is harmless, and starts the
-- lease anew), else {ms that it is held for, or -1, the holder's token or what the key
-- holds, -1, or -2 when that is no time}. Errors are passed on as the server words them.
-- include shared/timestamp.lua
if type(held) == 'table' then
    return held
end
if free() or is_held_by(ARGV[1]) then
    return write(ARGV[1], ARGV[2], ARGV[6] == 'ms')
end
local owner, time = writer()
return {left(), (time == held and owner or held):sub(1, 256), ends() and -1 or -2}
