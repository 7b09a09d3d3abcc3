--- Token locks on Redis and Valkey.
--
--     local sneck = require "sneck"
--     local client = assert(sneck.connect("redis://localhost:6379"))
--     do
--         local lock <close> = assert(client:hold("reports:42", {ttl = 10, wait = 30}))
--     end
--
-- Clients, locks and ops are userdata of the C module, which has the methods that
-- talk to the server. Here stand the constructors with their options, and the calls
-- that span an acquire and its release. Their rule: an error that is under way is
-- never replaced, and a loss is never silent.
--
-- Times are seconds. An expected failure returns nil, a message and a code such as
-- "BUSY" (after "SERVER" also the server's own word); misuse throws. docs/lua.md
-- lists every call.
local core = require "sneck.core"
local option_sets = require "sneck.options"

local check, set_of = option_sets.check, option_sets.set_of

local sneck = {version = core.version}
local client_methods = core.client_type.__index

local CONNECT_OPTIONS = set_of("timeout", "connect_timeout", "client_name", "prefix", "label")
local LOCK_OPTIONS = set_of("ttl", "wait", "label", "fair", "poll", "renew", "max_hold", "fence")
local LEGACY_OPTIONS = set_of("timeout", "wait", "label", "poll", "renew", "max_hold",
    "milliseconds")
local TRANSACTION_OPTIONS = set_of("attempts", "wait", "guard")
local UPDATE_OPTIONS = set_of("ttl", "attempts", "wait", "guard")
local SET_OPTIONS = set_of("ttl")

--- What an update's function returns to leave the value as it is.
sneck.KEEP = setmetatable({}, {__tostring = function() return "sneck.KEEP" end})

-- Values are checked in C, whose functions count on being called by the public ones,
-- from the user's line.
local function values(o)
    return o.ttl, o.wait, o.label, o.fair, o.poll, o.renew, o.max_hold, o.fence
end

--- Makes a client; nothing is sent yet.
-- Without a url it is the environment's SNECK_URL, or else redis://localhost:6379.
-- Options: timeout (5) and connect_timeout (the same) in seconds; client_name;
-- prefix, put before the name of each lock; label, which tells others who has a lock.
-- Returns the client, or nil, message, "INVALID" when the url is not valid.
function sneck.connect(url, options)
    local o = check(options, CONNECT_OPTIONS)
    return core.connect(url, o.timeout, o.connect_timeout, o.client_name, o.prefix, o.label)
end

--- Makes a client whose locks are held by a majority of several servers; nothing is sent.
-- The urls are a table of 1 to 15; the servers know nothing of each other. Options as for
-- connect(). Only locks can be had of the client: commands, transactions, update() and the
-- like, try_lock(), release_lock(), legacy_lock() and fair locks throw; its list of waiters is
-- empty. Where servers had errors of their own, a call that fails gives as its fifth value a
-- table with them in servers, by their addresses.
-- Returns the client, or nil, message, "INVALID" when a url is not valid.
function sneck.quorum(urls, options)
    local o = check(options, CONNECT_OPTIONS)
    return core.quorum(urls, o.timeout, o.connect_timeout, o.client_name, o.prefix, o.label)
end

--- Makes a lock that is not acquired; nothing is sent.
-- Options: ttl, how long the server keeps it, in seconds (10); wait, how long
-- acquire() waits at most, in seconds (for ever); label, in place of the client's; fair,
-- never to take a free lock before those who wait; poll, how often a waiter asks where
-- no wake-up can come, in seconds (0.05); renew, whether a thread keeps the lease alive
-- while the lock is held (in hold() and with_lock() only); max_hold, seconds after which
-- it does not any more (no limit); fence, true for a number with each acquire.
function client_methods:lock(name, options)
    local o = check(options, LOCK_OPTIONS)
    return core.lock(self, name, nil, values(o))
end

--- Makes a lock that owns a token, handed over by whoever acquired it.
-- Nothing is sent, so remaining() is 0 until extend() confirms the lease.
function client_methods:adopt(name, token, options)
    local o = check(options, LOCK_OPTIONS)
    if token == nil then
        error("the token must be a string, not nil", 2)
    end
    return core.lock(self, name, token, values(o))
end

--- Makes a lock that its coroutine may acquire again; nothing is sent.
-- It is released when it was released as often. Options as for lock(). What it tells is
-- the running coroutine's; coroutines exclude each other.
function client_methods:rlock(name, options)
    local o = check(options, LOCK_OPTIONS)
    return core.rlock(self, name, nil, values(o))
end

--- Makes a timestamp lock, whose key holds the Unix time at which it runs out; nothing is sent.
-- For older clients that use SETNX and GETSET: it excludes them, and they exclude it.
-- Options: timeout, for how many seconds it is held (10), by the server's clock; poll, how
-- often who waits asks (0.05); milliseconds, true where older clients write these: they take
-- seconds for a time that is over; wait, label, renew and max_hold as for lock().
function client_methods:legacy_lock(name, options)
    local o = check(options, LEGACY_OPTIONS)
    return core.legacy_lock(self, name, nil, o.timeout, o.wait, o.label, nil, o.poll, o.renew,
        o.max_hold, nil, o.milliseconds)
end

--- Acquires a lock, and renews it, for a `<close>` variable; options as for lock().
-- Returns the lock, or nil, message, code. The same for a lock that is there already, or
-- was adopted, is lock:hold([wait]).
function client_methods:hold(name, options)
    local o = check(options, LOCK_OPTIONS)
    return core.lock(self, name, nil, values(o)):hold()
end

local function finish(lock, ok, ...)
    local released, message = core.settle(lock)
    if not ok then
        error((...), 0)
    end
    if not released then
        error(message, 2)
    end
    return ...
end

--- Calls body(lock) while the lock is held and renewed; options as for lock().
-- Returns what the body returns, and throws what it throws, after the release. When
-- the lock was not acquired, the body is not called: nil, message, code. When the
-- body ended well but the lock was lost meanwhile, throws, as its results may be
-- wrong. For every version of Lua; the body may yield where pcall lets it.
function client_methods:with_lock(name, options, body)
    local o = check(options, LOCK_OPTIONS)
    if type(body) ~= "function" then
        error("the body must be a function, not " .. type(body), 2)
    end
    local lock, message, code, word, details = core.lock(self, name, nil, values(o)):hold()
    if not lock then
        return nil, message, code, word, details
    end
    return finish(lock, pcall(body, lock))
end

--- Changes the string at a key by a function of it; returns what it is then.
-- The function gets the old value, nil when the key is absent, and returns the new one,
-- nil to delete the key, or sneck.KEEP. It is run again when another client has changed
-- the key meanwhile. The key keeps its expiry unless the option ttl (seconds) sets one.
-- The other options and the failures are those of transaction().
function client_methods:update(key, body, options)
    local o = check(options, UPDATE_OPTIONS)
    return core.update(self, key, body, sneck.KEEP, o.ttl, o.attempts, o.wait, o.guard)
end

--- Changes the string at a key if it is the expected one; returns whether it was.
-- nil stands for no key: if it is expected, the key must be absent; if it is new, the key
-- is deleted. Option: ttl, as for update(). Fails as transaction() does.
function client_methods:compare_and_set(key, expected, new, options)
    local o = check(options, SET_OPTIONS)
    return core.compare_and_set(self, key, expected, new, o.ttl)
end

--- Deletes a key if the string there is the expected one; returns whether it was.
-- Fails as transaction() does.
function client_methods:compare_and_delete(key, expected)
    if expected == nil then
        error("the expected value must be a string or a number, not nil", 2)
    end
    return core.compare_and_set(self, key, expected, nil, nil)
end

--- Calls body(tx), which reads and queues writes; then writes all of them or none.
-- Returns a table of what the writes gave, with their number in n; nil after
-- tx:abort(). The keys, a table, are watched from the first read on: when another client
-- has changed one, nothing is written and the body is run again.
-- Options: attempts, how often it is run at most (16); wait, seconds after which no
-- attempt begins (5; math.huge: no limit); guard, a lock without which nothing is
-- written. An error of the body ends it with nothing written, and is thrown on. Failures
-- are nil, message, code, the server's word; after "CONFLICT" nil and a table with
-- attempts, waited (seconds) and keys; after "SERVER", when writes failed as they were
-- run, the word and a table with their results and the index of the first failure.
function client_methods:transaction(keys, body, options)
    local o = check(options, TRANSACTION_OPTIONS)
    return core.transaction(self, keys, body, o.attempts, o.wait, o.guard)
end

--- Releases the lock at the end of a `<close>` variable's block.
-- Throws after a clean block when the lock was lost meanwhile.
function core.lock_type.__close(lock, err)
    local released, message = core.settle(lock)
    if not released and err == nil then
        error(message, 2)
    end
end

return sneck
