-- What the scripts of timestamp locks share.
-- KEYS[1] the lock: the Unix time at which it runs out, in seconds or milliseconds;
-- KEYS[2] who wrote it: that time, a blank and the writer's token. It stands as long as
-- the lock's own key, and counts only while the time there is the one that was written.
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local held = redis.pcall('GET', KEYS[1])

-- The time at which it runs out, and how many of its unit are a second; nil when it is no
-- time at all, such as a token, or a number below 1e9 (the year 2001), such as the 1 of a
-- plain SETNX. Of 1e11 and more it is one in milliseconds. From 1e14 on it would be of the
-- year 5138, so it is in microseconds or less, which nobody writes here: no time either.
local function ends()
    local time = held and held:match('^%d+%.?%d*$') and tonumber(held)
    if time and time >= 1e9 and time < 1e14 then
        local unit = time >= 1e11 and 1000 or 1
        return time / unit, unit
    end
end

-- Nobody has it: there is no key, or its time is over. What is no time never is.
local function free()
    return not held or (ends() or now) < now
end

-- The token of a writer that may be another's, and the time that it wrote.
local function writer()
    local both = redis.pcall('GET', KEYS[2])
    if type(both) == 'string' then
        local time, token = both:match('^(%S+) (.*)$')
        return token, time
    end
end

-- It is held with this token, and nobody has moved its time.
local function is_held_by(token)
    local owner, time = writer()
    return owner == token and time == held and not free()
end

-- It was acquired with this token, and another client has written a time over that since.
local function is_moved(token)
    local owner, time = writer()
    return not free() and owner == token and time ~= held
end

-- For how many ms it is held at least; -1: it never ends.
local function left()
    local ttl, time = redis.call('PTTL', KEYS[1]), ends()
    if not time then
        return ttl
    end
    local rest = math.max(math.ceil((time - now) * 1000), 0)
    return ttl >= 0 and ttl < rest and ttl or rest
end

-- Writes a lease of so many ms, in milliseconds where that is wanted, or the key had them:
-- to who reads milliseconds, seconds are long over. Both keys go a minute after it, so
-- nothing is immortal, and an older client that has seen the time over finds
-- it there when it does its GETSET. The second key comes first: a lock of which nobody knows
-- the writer could not be released. Returns 1, or the error that the server gives.
local function write(token, ttl, milliseconds)
    local _, had = ends()
    local unit = milliseconds and 1000 or had or 1
    local ending = math.floor((now + ttl / 1000) * unit) + 1
    local time = string.format('%.0f', ending)
    local expiry = string.format('%.0f', math.ceil((ending / unit - now) * 1000) + 60000)
    local noted = redis.pcall('SET', KEYS[2], time .. ' ' .. token, 'PX', expiry)
    if noted.err then
        return noted
    end
    local set = redis.pcall('SET', KEYS[1], time, 'PX', expiry)
    return set.err and set or 1
end
