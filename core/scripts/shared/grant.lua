-- Give the lock to the first waiter that lives, and tell it. Shared by scripts.
-- KEYS[1] the lock, KEYS[2] the queue; KEYS[3] the last fence, where it is known: a
-- waiter that is given the lock without its fence asks for one. The key and the queue
-- change before the grant is published. Dead waiters (no subscriber on their inbox)
-- are dropped, and so is what is no entry at all; 1,000 at once at most. Our own entry
-- is passed over or, where `keep`, is given the lock.
-- One that has waited for more than 300 ms may be frozen by now: it gets 1 s to
-- claim the lock, and the next one is told when to look. Not so if its inbox is that of
-- whoever asks us, who was there a moment ago. `mark` is that inbox and when the request
-- was sent, by the asker's clock, which the grant tells in place of the time it has waited.
-- Returns the new holder's token; nil when nobody waits; false when this user may
-- not do it: then the lock is given to nobody, and the waiter keeps its place.
-- include shared/fence.lua
local function put_back(since, member)
    redis.call('ZADD', KEYS[2], since, member)
    redis.call('PEXPIRE', KEYS[2], 60000)
end

local function grant(own, keep, mark)
    local here, sent = (mark or ''):match('^(%S+) (%d+)$')
    for _ = 1, 1000 do
        local first = redis.pcall('ZPOPMIN', KEYS[2])
        if first.err then
            return false
        end
        local member, since = first[1], first[2]
        if not member then
            return nil
        end
        local token, inbox, ttl, fenced = member:match('^(%S+) (%S+) (%d+)( ?f?)$')
        if token == own then
            if keep then
                return own
            end
        elseif token then
            local heard = redis.pcall('PUBSUB', 'NUMSUB', inbox)
            if heard.err then
                put_back(since, member)
                return false
            end
            if heard[2] > 0 then
                local time = redis.call('TIME')
                local waited = (time[1] * 1000000 + time[2] - since) / 1000
                local frozen = waited > 300 and inbox ~= here
                local claim = frozen and math.min(ttl, 1000) or ttl
                redis.call('SET', KEYS[1], token, 'PX', claim)
                local time_of_it = inbox == here and '@' .. sent or string.format('%d', waited)
                local message = token .. ' ' .. time_of_it .. ' ' .. claim
                local fence = fenced == ' f' and KEYS[3] and next_fence()
                if type(fence) == 'number' then
                    message = message .. string.format(' %.0f', fence)
                end
                local told = redis.pcall('PUBLISH', inbox, message)
                if type(told) == 'table' then
                    redis.call('DEL', KEYS[1])
                    put_back(since, member)
                    return false
                end
                local following = frozen and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ''
                local next_token, next_inbox = following:match('^(%S+) (%S+)')
                if next_token then
                    redis.pcall('PUBLISH', next_inbox, next_token .. ' - ' .. claim)
                end
                return token
            end
        end
    end
end
