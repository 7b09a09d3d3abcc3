-- Tell who holds a timestamp lock. KEYS[1] the lock, KEYS[2] who wrote it.
-- Returns {the holder's token or what the key holds, ms that it is held for, or -1}, or
-- {nil, -2} when it is free. Errors are passed on as the server words them.
-- include shared/timestamp.lua
if type(held) == 'table' then
    return held
end
if free() then
    return {false, -2}
end
local owner, time = writer()
return {time == held and owner or held, left()}
