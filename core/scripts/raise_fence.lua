-- Raise the last fence while we hold the lock, so that the next one made here is greater than
-- the one given. KEYS[1] the lock, KEYS[2] the last fence, which is kept for a day.
-- ARGV[1] our token; ARGV[2] a fence in decimal.
-- Returns 1; 0 when the lock does not hold our token: then who was given it before this came
-- has a fence that may be smaller, and this server does not count. Errors are passed on as
-- the server words them.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return held
elseif held ~= ARGV[1] then
    return 0
end
local last = redis.pcall('GET', KEYS[2])
if type(last) == 'table' then
    return last
end
if (tonumber(last or 0) or 0) < tonumber(ARGV[2]) then
    local set = redis.pcall('SET', KEYS[2], ARGV[2], 'PX', 86400000)
    if set.err then
        return set
    end
end
return 1
