-- Take a timestamp lock away from whoever holds it.
-- KEYS[1] the lock, KEYS[2] who wrote it.
-- Returns 1 when it was held, 0 when it was free: then nothing is deleted, since an
-- older client may be about to take it over. Errors are passed on as the server words
-- them.
-- include shared/timestamp.lua
if type(held) == 'table' then
    return held
end
if free() then
    return 0
end
redis.call('DEL', KEYS[1], KEYS[2])
return 1
