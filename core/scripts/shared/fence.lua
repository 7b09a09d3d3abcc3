-- Make the next fence. Shared by scripts.
-- KEYS[3] the last fence. Greater than the last one and, so that it also is when that was
-- lost, than the time in µs since 1970.
-- Returns it as a number, or the error that the server gives.
-- include shared/keep_fence.lua
local function next_fence()
    local last = redis.pcall('GET', KEYS[3])
    if type(last) == 'table' then
        return last
    end
    local now = time_us()
    local fence = math.max(tonumber(last or 0) or 0, now - 1) + 1
    local set = keep_fence(KEYS[3], fence, now)
    return set.err and set or fence
end
