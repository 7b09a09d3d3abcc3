/* Generated from core/scripts by scripts/generate; do not edit. */

static const struct script script_acquire = {
    "acquire",
    "6295f526cb393bfbd5369ba2095dfe3e4f996aa2",
    2,
    "local function grant(own, keep)\n"
    "for _ = 1, 1000 do\n"
    "local member, since = unpack(redis.pcall('ZPOPMIN', KEYS[2]))\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token == own then\n"
    "if keep then\n"
    "return own\n"
    "end\n"
    "elseif (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local waited = (time[1] * 1000000 + time[2] - since) / 1000\n"
    "local claim = waited > 300 and math.min(ttl, 1000) or ttl\n"
    "redis.call('SET', KEYS[1], token, 'PX', claim)\n"
    "local told = redis.pcall('PUBLISH', inbox, token .. string.format(' %.0f ', waited) .. claim)\n"
    "if type(told) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
    "end\n"
    "local following = waited > 300 and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ''\n"
    "local next_token, next_inbox = following:match('^(%S+) (%S+)')\n"
    "if next_token then\n"
    "redis.pcall('PUBLISH', next_inbox, next_token .. ' - ' .. claim)\n"
    "end\n"
    "return token\n"
    "end\n"
    "end\n"
    "end\n"
    "local token, ttl, entry, former = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n"
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "if not held then\n"
    "local head = redis.call('ZRANGE', KEYS[2], 0, 0)[1]\n"
    "if not head or head == entry or head == former then\n"
    "held = token\n"
    "else\n"
    "held = grant(token, true) or token\n"
    "end\n"
    "end\n"
    "if held == token then\n"
    "local set = redis.pcall('SET', KEYS[1], token, 'PX', ttl)\n"
    "if set.err then\n"
    "return set\n"
    "end\n"
    "end\n"
    "local since\n"
    "if former ~= '' then\n"
    "since = redis.call('ZSCORE', KEYS[2], former)\n"
    "redis.call('ZREM', KEYS[2], former)\n"
    "end\n"
    "if entry == '' or held == token then\n"
    "if ARGV[5] == '1' then\n"
    "redis.call('ZREM', KEYS[2], entry)\n"
    "end\n"
    "return held == token and 1 or {redis.call('PTTL', KEYS[1]), held:sub(1, 256), -1}\n"
    "end\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local added = redis.pcall('ZADD', KEYS[2], 'NX', since or now, entry)\n"
    "if type(added) == 'table' then\n"
    "return added\n"
    "end\n"
    "local rank\n"
    "if ARGV[5] == '1' then\n"
    "rank = redis.call('ZRANK', KEYS[2], entry)\n"
    "else\n"
    "rank = redis.call('ZCARD', KEYS[2]) - 1\n"
    "end\n"
    "if rank < 3 or ARGV[5] == '1' or now % 8 == 0 then\n"
    "redis.call('PEXPIRE', KEYS[2], 60000)\n"
    "end\n"
    "if rank >= 3 and ARGV[5] == '0' then\n"
    "return 0\n"
    "end\n"
    "return {redis.call('PTTL', KEYS[1]), held:sub(1, 256), rank}",
};

static const struct script script_extend = {
    "extend",
    "8751fdd3f6fc95a54ed7e195d3751c32200acf96",
    1,
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if held == ARGV[1] then\n"
    "return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n"
    "end\n"
    "return type(held) == 'table' and held or 0",
};

static const struct script script_force_release = {
    "force_release",
    "3c2b64c49bc509d4bccc539ece5f0ada080fedd2",
    2,
    "local function grant(own, keep)\n"
    "for _ = 1, 1000 do\n"
    "local member, since = unpack(redis.pcall('ZPOPMIN', KEYS[2]))\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token == own then\n"
    "if keep then\n"
    "return own\n"
    "end\n"
    "elseif (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local waited = (time[1] * 1000000 + time[2] - since) / 1000\n"
    "local claim = waited > 300 and math.min(ttl, 1000) or ttl\n"
    "redis.call('SET', KEYS[1], token, 'PX', claim)\n"
    "local told = redis.pcall('PUBLISH', inbox, token .. string.format(' %.0f ', waited) .. claim)\n"
    "if type(told) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
    "end\n"
    "local following = waited > 300 and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ''\n"
    "local next_token, next_inbox = following:match('^(%S+) (%S+)')\n"
    "if next_token then\n"
    "redis.pcall('PUBLISH', next_inbox, next_token .. ' - ' .. claim)\n"
    "end\n"
    "return token\n"
    "end\n"
    "end\n"
    "end\n"
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "if held and not grant('') then\n"
    "redis.call('DEL', KEYS[1])\n"
    "end\n"
    "return held and 1 or 0",
};

static const struct script script_holder = {
    "holder",
    "6edd3489b5f4d42465fd9ccd2273801561ed0ea2",
    1,
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "return {held, redis.call('PTTL', KEYS[1])}",
};

static const struct script script_probe = {
    "probe",
    "3f1beacc7a252ed948e6558da2bcc11117d7c9a1",
    0,
    "for _, command in ipairs({{'PUBLISH', ARGV[1], ''}, {'PUBSUB', 'NUMSUB', ARGV[1]}}) do\n"
    "local reply = redis.pcall(unpack(command))\n"
    "if type(reply) == 'table' and reply.err then\n"
    "return reply\n"
    "end\n"
    "end\n"
    "return redis.status_reply('OK')",
};

static const struct script script_release = {
    "release",
    "da7bb5765532e83b51adae4bd55fec6a372cea64",
    2,
    "local function grant(own, keep)\n"
    "for _ = 1, 1000 do\n"
    "local member, since = unpack(redis.pcall('ZPOPMIN', KEYS[2]))\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token == own then\n"
    "if keep then\n"
    "return own\n"
    "end\n"
    "elseif (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local waited = (time[1] * 1000000 + time[2] - since) / 1000\n"
    "local claim = waited > 300 and math.min(ttl, 1000) or ttl\n"
    "redis.call('SET', KEYS[1], token, 'PX', claim)\n"
    "local told = redis.pcall('PUBLISH', inbox, token .. string.format(' %.0f ', waited) .. claim)\n"
    "if type(told) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
    "end\n"
    "local following = waited > 300 and redis.call('ZRANGE', KEYS[2], 0, 0)[1] or ''\n"
    "local next_token, next_inbox = following:match('^(%S+) (%S+)')\n"
    "if next_token then\n"
    "redis.pcall('PUBLISH', next_inbox, next_token .. ' - ' .. claim)\n"
    "end\n"
    "return token\n"
    "end\n"
    "end\n"
    "end\n"
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if ARGV[2] ~= '' then\n"
    "redis.pcall('ZREM', KEYS[2], ARGV[2])\n"
    "end\n"
    "if held == ARGV[1] then\n"
    "local granted = grant(held)\n"
    "if granted then\n"
    "return 2\n"
    "end\n"
    "redis.call('DEL', KEYS[1])\n"
    "return granted == nil and 1 or 3\n"
    "end\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "return held and 0 or -1",
};

static const struct script script_waiters = {
    "waiters",
    "9b967f65fa713ecb04e784c2286dbca2019b47b9",
    2,
    "local time = redis.call('TIME')\n"
    "local list = redis.pcall('ZRANGE', KEYS[2], 0, 999, 'WITHSCORES')\n"
    "if list.err then\n"
    "return list\n"
    "end\n"
    "table.insert(list, 1, string.format('%.0f', time[1] * 1000000 + time[2]))\n"
    "return list",
};
