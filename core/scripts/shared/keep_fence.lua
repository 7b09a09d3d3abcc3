-- Write the last fence. Shared by scripts.
-- It is kept until a day after this server's clock has shown it, and not only for a day: the
-- clock that made it, this one or another server's, may have been far ahead. What is made
-- when it has expired is greater by the clock.
local function keep_fence(key, fence, now)
    local ahead_ms = math.floor(math.max(0, fence - now) / 1000)
    return redis.pcall('SET', key, string.format('%.0f', fence), 'PX',
                       string.format('%.0f', 86400000 + ahead_ms))
end

local function time_us()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end
