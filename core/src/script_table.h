/* Generated from core/scripts by scripts/generate; do not edit. */

static const struct script script_acquire = {
    "acquire",
    "fda49819ed52c6e31719a7e047258b7640ec91ed",
    3,
    "local function grant(own)\n"
    "for _ = 1, 128 do\n"
    "local head = redis.pcall('ZPOPMIN', KEYS[2])\n"
    "local member, since = head[1], head[2]\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token ~= own and (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local waited = math.max(now - since, 0)\n"
    "if waited > 4000000 then\n"
    "local seen = redis.call('HGET', KEYS[3], token)\n"
    "redis.call('HDEL', KEYS[3], token)\n"
    "if not seen or now - seen > 4000000 then\n"
    "ttl = math.min(ttl, 1000)\n"
    "end\n"
    "end\n"
    "redis.call('SET', KEYS[1], token, 'PX', ttl)\n"
    "local grant = string.format('%s %.0f %d', token, waited / 1000, ttl)\n"
    "if type(redis.pcall('PUBLISH', inbox, grant)) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
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
    "held = grant(token) or token\n"
    "end\n"
    "end\n"
    "if held == token then\n"
    "local set = redis.pcall('SET', KEYS[1], token, 'PX', ttl)\n"
    "if set.err then\n"
    "return set\n"
    "end\n"
    "end\n"
    "local waits = entry ~= '' and held ~= token\n"
    "local since\n"
    "if former ~= '' then\n"
    "since = redis.call('ZSCORE', KEYS[2], former)\n"
    "redis.call('ZREM', KEYS[2], former)\n"
    "end\n"
    "if not waits then\n"
    "if ARGV[5] == '1' then\n"
    "redis.call('ZREM', KEYS[2], entry)\n"
    "redis.call('HDEL', KEYS[3], token)\n"
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
    "redis.call('HSET', KEYS[3], token, now)\n"
    "redis.call('PEXPIRE', KEYS[3], 60000)\n"
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
    "56889117d7cd08d802cc659185b5444b7016d8f0",
    3,
    "local function grant(own)\n"
    "for _ = 1, 128 do\n"
    "local head = redis.pcall('ZPOPMIN', KEYS[2])\n"
    "local member, since = head[1], head[2]\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token ~= own and (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local waited = math.max(now - since, 0)\n"
    "if waited > 4000000 then\n"
    "local seen = redis.call('HGET', KEYS[3], token)\n"
    "redis.call('HDEL', KEYS[3], token)\n"
    "if not seen or now - seen > 4000000 then\n"
    "ttl = math.min(ttl, 1000)\n"
    "end\n"
    "end\n"
    "redis.call('SET', KEYS[1], token, 'PX', ttl)\n"
    "local grant = string.format('%s %.0f %d', token, waited / 1000, ttl)\n"
    "if type(redis.pcall('PUBLISH', inbox, grant)) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
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
    "e863185387e4f79d46bdc9420126cd4389e97ff1",
    3,
    "local function grant(own)\n"
    "for _ = 1, 128 do\n"
    "local head = redis.pcall('ZPOPMIN', KEYS[2])\n"
    "local member, since = head[1], head[2]\n"
    "if not member then\n"
    "return nil\n"
    "end\n"
    "local token, inbox, ttl = member:match('^(%S+) (%S+) (%d+)$')\n"
    "if token ~= own and (redis.pcall('PUBSUB', 'NUMSUB', inbox)[2] or 0) > 0 then\n"
    "local time = redis.call('TIME')\n"
    "local now = time[1] * 1000000 + time[2]\n"
    "local waited = math.max(now - since, 0)\n"
    "if waited > 4000000 then\n"
    "local seen = redis.call('HGET', KEYS[3], token)\n"
    "redis.call('HDEL', KEYS[3], token)\n"
    "if not seen or now - seen > 4000000 then\n"
    "ttl = math.min(ttl, 1000)\n"
    "end\n"
    "end\n"
    "redis.call('SET', KEYS[1], token, 'PX', ttl)\n"
    "local grant = string.format('%s %.0f %d', token, waited / 1000, ttl)\n"
    "if type(redis.pcall('PUBLISH', inbox, grant)) == 'table' then\n"
    "redis.call('DEL', KEYS[1])\n"
    "return false\n"
    "end\n"
    "return token\n"
    "end\n"
    "end\n"
    "end\n"
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if ARGV[2] ~= '' then\n"
    "redis.pcall('ZREM', KEYS[2], ARGV[2])\n"
    "redis.pcall('HDEL', KEYS[3], ARGV[1])\n"
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
