/* Generated from core/scripts by scripts/generate; do not edit. */

static const struct script script_acquire = {
    "acquire",
    "f675c7e4eb854b3a09f379be542e328e9025b3b8",
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "if held and held ~= ARGV[1] then\n"
    "return {redis.call('PTTL', KEYS[1]), held:sub(1, 256)}\n"
    "end\n"
    "local set = redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
    "return set.err and set or 1",
};

static const struct script script_extend = {
    "extend",
    "8751fdd3f6fc95a54ed7e195d3751c32200acf96",
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if held == ARGV[1] then\n"
    "return redis.pcall('PEXPIRE', KEYS[1], ARGV[2])\n"
    "end\n"
    "return type(held) == 'table' and held or 0",
};

static const struct script script_holder = {
    "holder",
    "6edd3489b5f4d42465fd9ccd2273801561ed0ea2",
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "return {held, redis.call('PTTL', KEYS[1])}",
};

static const struct script script_release = {
    "release",
    "63e6f5e1fe2d641ee11acbc334826bcb7b962999",
    "local held = redis.pcall('GET', KEYS[1])\n"
    "if held == ARGV[1] then\n"
    "return redis.pcall('DEL', KEYS[1])\n"
    "end\n"
    "if type(held) == 'table' then\n"
    "return held\n"
    "end\n"
    "return held and 0 or -1",
};
