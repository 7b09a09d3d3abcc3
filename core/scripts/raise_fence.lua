-- Raise the last fence while we hold the lock, so that the next one made here is greater than
-- the one given. KEYS[1] the lock, KEYS[2] the last fence.
-- ARGV[1] our token; ARGV[2] a fence in decimal.
-- Returns 1; 0 when the lock does not hold our token: then who was given it before this came
-- has a fence that may be smaller, and this server does not count. Errors are passed on as
-- the server words them.
-- include shared/keep_fence.lua
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
local fence = tonumber(ARGV[2])
if (tonumber(last or 0) or 0) < fence then
    local set = keep_fence(KEYS[2], fence, time_us())
    if set.err then
        return set
    end
end
return 1
