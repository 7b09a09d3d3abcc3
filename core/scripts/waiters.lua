-- Tell who waits for the lock, first come first, 1,000 at most.
-- KEYS[1] the lock, KEYS[2] the queue.
-- Returns {now in µs, entry, since in µs, entry, since, ...}.
local time = redis.call('TIME')
local list = redis.pcall('ZRANGE', KEYS[2], 0, 999, 'WITHSCORES')
if list.err then
    return list
end
table.insert(list, 1, string.format('%.0f', time[1] * 1000000 + time[2]))
return list
