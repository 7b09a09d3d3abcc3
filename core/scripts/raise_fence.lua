-- Raise the last fence, so that the next one made here is greater than the one given.
-- KEYS[1] the last fence, which is kept for a day; ARGV[1] a fence in decimal.
-- Returns 1. Errors are passed on as the server words them.
local last = redis.pcall('GET', KEYS[1])
if type(last) == 'table' then
    return last
end
if (tonumber(last or 0) or 0) < tonumber(ARGV[1]) then
    local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', 86400000)
    if set.err then
        return set
    end
end
return 1
