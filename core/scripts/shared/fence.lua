-- Make the next fence. Shared by scripts.
-- KEYS[3] the last fence, which is kept for a day. Greater than the last one and, so
-- that it also is when that was lost, than the time in µs since 1970.
-- Returns it as a number, or the error that the server gives.
local function next_fence()
    local last = redis.pcall('GET', KEYS[3])
    if type(last) == 'table' then
        return last
    end
    local time = redis.call('TIME')
    local now = time[1] * 1000000 + time[2]
    local fence = math.max(tonumber(last or 0) or 0, now - 1) + 1
    local set = redis.pcall('SET', KEYS[3], string.format('%.0f', fence), 'PX', 86400000)
    return set.err and set or fence
end
