--- Sneck in coroutines: while one waits, the others go on.
--
--     local async = require "sneck.async"
--     local loop = async.loop()
--     local client = assert(async.connect(loop, "redis://localhost:6379"))
--     loop:spawn(function()
--         local lock <close> = assert(client:hold("reports:42", {ttl = 10}))
--     end)
--     loop:run()
--
-- In place of that loop stands `require "sneck.async.cqueues"`, which has a wrap() to make
-- coroutines by, or `require "sneck.async.luv"`. Calls and results are those of the module
-- sneck; all that wait for locks share one link, which is at most two connections.
--
-- A coroutine that is closed while it waits leaves nothing behind: see docs/lua-async.md.
local core = require "sneck.core"
local guard = require "sneck.async.guard"
local loops = require "sneck.async.loop"
local options = require "sneck.options"
local pump = require "sneck.async.pump"
local sneck = require "sneck"
local transaction = require "sneck.async.transaction"

local async = {}

local TRANSACTION_OPTIONS = options.set_of("attempts", "wait", "guard")
local UPDATE_OPTIONS = options.set_of("ttl", "attempts", "wait", "guard")
local SET_OPTIONS = options.set_of("ttl")

local client_methods, lock_methods = {}, {}
local client_type = {__index = client_methods}
local lock_type = {__index = lock_methods}

-- Calls a function of the blocking module that only makes something. Its misuse is that
-- of the user, whose line is `level`.
local function make(level, construct, ...)
    local made = table.pack(pcall(construct, ...))
    if not made[1] then
        error((tostring(made[2]):gsub("^[^\n]-:%d+: ", "", 1)), level + 1)
    end
    return table.unpack(made, 2, made.n)
end

-- --------------------------------------------------------------------- clients

async.loop = loops.new

local function take_connections(given)
    if type(given) ~= "table" then
        return 1, given
    end
    local others, connections = {}, 1
    for name, value in pairs(given) do
        if name == "connections" then
            connections = value
        else
            others[name] = value
        end
    end
    if math.type(connections) ~= "integer" or connections < 1 then
        error("connections must be a whole number from 1 on", 4)
    end
    return connections, others
end

-- Makes a client by the function of the blocking module that has this name.
local function new_client(name, loop, address, given)
    if type(loop) ~= "table" or not loop.watch then
        error(name .. "() needs a loop first: async.loop(), or the module of an adapter", 3)
    end
    local connections, others = take_connections(given)
    local blocking, message, code = make(3, sneck[name], address, others)
    if not blocking then
        return nil, message, code
    end
    local shared
    shared, message, code = pump.new(loop, blocking)
    if not shared then
        return nil, message, code
    end
    return setmetatable({
        blocking = blocking,
        pump = shared,
        places = transaction.places(loop, connections),
    }, client_type)
end

--- Makes a client for the coroutines of a loop; nothing is sent yet.
-- The first that calls it decides which loop, or which controller of cqueues, that is.
-- Options: those of sneck.connect(); connections, how many transactions run at once (1).
-- Returns the client, or nil, message, "INVALID" when the url is not valid.
function async.connect(loop, url, given)
    local client, message, code = new_client("connect", loop, url, given)
    return client, message, code -- no tail call: the levels of errors count this one
end

--- The same for locks on several servers, of which a majority must agree; as sneck.quorum().
function async.quorum(loop, urls, given)
    local client, message, code = new_client("quorum", loop, urls, given)
    return client, message, code
end

function client_type.__tostring(client)
    return (tostring(client.blocking):gsub("^sneck%.client", "sneck.async.client"))
end

--- What the client has done.
function client_methods:stats()
    return self.blocking:stats()
end

--- The addresses of its servers.
function client_methods:servers()
    return self.blocking:servers()
end

--- Ends what waits, with INTERRUPTED, and closes the client. Needs no coroutine.
function client_methods:close()
    self.places:close()
    self.pump:close()
end

client_type.__close = client_methods.close

--- Sends one command and gives its reply.
function client_methods:execute(...)
    local link = self.pump:enter()
    return self.pump:await(nil, link:execute(self.blocking, ...))
end

--- Lists who waits for a lock, the next one first.
function client_methods:waiters(name)
    local link = self.pump:enter()
    return self.pump:await(nil, link:waiters(make(2, self.blocking.lock, self.blocking, name)))
end

--- Takes a lock away from whoever holds it; returns whether it was held.
function client_methods:force_release(name)
    local link = self.pump:enter()
    return self.pump:await(nil,
        link:force_release(make(2, self.blocking.lock, self.blocking, name)))
end

--- Sets a key to a value of the caller's if it does not exist; times in milliseconds.
-- A coroutine that is closed meanwhile has not got it.
function client_methods:try_lock(key, value, expire_ms, timeout_ms)
    local shared, client = self.pump, self.blocking
    local link = shared:enter()
    return shared:await(function(ended)
        if ended:result() then -- taken, but the coroutine was not told any more
            shared:go_on((shared.link:release_lock(client, key, value)))
        end
    end, link:try_lock(client, key, value, expire_ms, timeout_ms))
end

--- Releases what try_lock() took. Once begun it is done, even if the coroutine is closed.
function client_methods:release_lock(key, value)
    local link = self.pump:enter()
    return self.pump:await(false, link:release_lock(self.blocking, key, value))
end

-- ----------------------------------------------------------------------- locks

local function wrap(client, lock)
    return setmetatable({client = client, pump = client.pump, lock = lock}, lock_type)
end

--- Makes a lock that is not acquired; options as for the module sneck.
function client_methods:lock(name, given)
    return wrap(self, make(2, self.blocking.lock, self.blocking, name, given))
end

--- Makes a lock that owns a token.
function client_methods:adopt(name, token, given)
    return wrap(self, make(2, self.blocking.adopt, self.blocking, name, token, given))
end

--- Makes a timestamp lock.
function client_methods:legacy_lock(name, given)
    return wrap(self, make(2, self.blocking.legacy_lock, self.blocking, name, given))
end

--- Makes a lock that its coroutine may acquire again.
function client_methods:rlock(name, given)
    return wrap(self, make(2, self.blocking.rlock, self.blocking, name, given))
end

local function acquire(lock, op, ...)
    return lock.pump:await(function(ended)
        if ended:result() then -- granted, but the coroutine was not told any more
            lock.pump:release_later(lock.lock)
        end
    end, op, ...)
end

-- The same at the beginning of a block. An adopted lock stays, as it was the caller's.
local function enter(lock, adopted, op, ...)
    core.begin_body(lock.lock)
    return lock.pump:await(function(ended)
        if ended:result() and not adopted then
            lock.pump:release_later(lock.lock)
        else
            core.end_body(lock.lock)
        end
    end, op, ...)
end

--- Acquires the lock; waits at most so many seconds, or as long as its option says.
function lock_methods:acquire(wait)
    local link = self.pump:enter()
    return acquire(self, link:acquire(self.lock, wait))
end

--- Releases the lock. Once begun it is done, even if the coroutine is closed.
function lock_methods:release()
    local link = self.pump:enter()
    return self.pump:await(false, link:release(self.lock))
end

--- Sets the time that the lease has left, to the lock's own ttl without one.
function lock_methods:extend(ttl)
    local link = self.pump:enter()
    return self.pump:await(nil, link:extend(self.lock, ttl))
end

--- Tells who holds the lock; nil when it is free.
function lock_methods:holder()
    local link = self.pump:enter()
    return self.pump:await(nil, link:holder(self.lock))
end

local function is_held(holder, ...)
    if select("#", ...) > 0 then
        return nil, ...
    end
    return holder ~= nil
end

--- Tells whether anybody holds the lock.
function lock_methods:locked()
    local link = self.pump:enter()
    return is_held(self.pump:await(nil, link:holder(self.lock)))
end

--- Takes the lock away from whoever holds it; returns whether it was held.
function lock_methods:force_release()
    local link = self.pump:enter()
    return self.pump:await(nil, link:force_release(self.lock))
end

-- What the lock itself knows.
for _, name in ipairs {"fence", "lease", "lost", "name", "owned", "remaining", "token", "ttl"} do
    local method = core.lock_type.__index[name]
    lock_methods[name] = function(self)
        return method(self.lock)
    end
end

--- Begins to renew a lock that is held; or, with false, ends that.
function lock_methods:keep_alive(on)
    return make(1, self.lock.keep_alive, self.lock, on) -- a tail call, so 1 is the user's line
end

--- Makes another lock of the same name and options, which owns nothing.
function lock_methods:clone()
    return wrap(self.client, self.lock:clone())
end

function lock_type.__tostring(lock)
    return (tostring(lock.lock):gsub("^sneck%.", "sneck.async."))
end

local function settle(lock)
    return lock.pump:await(false, lock.pump.link:settle(lock.lock))
end

--- Releases the lock at the end of a `<close>` variable's block.
-- Throws after a clean block when the lock was lost meanwhile. Where nothing can wait,
-- as in a coroutine that is being closed, the loop releases it later.
function lock_type.__close(lock, err)
    if not lock.pump:can_wait() then
        lock.pump:release_later(lock.lock)
        return
    end
    local released, message = settle(lock)
    if not released and err == nil then
        error(message, 2)
    end
end

-- Gives the lock that was acquired, once it is renewed.
local function held(lock, ok, ...)
    if not ok then
        core.end_body(lock.lock)
        return nil, ...
    end
    local kept, message, code = core.keep(lock.lock)
    if not kept then
        settle(lock)
        return nil, message, code
    end
    return lock
end

--- Acquires the lock, or confirms an adopted one, and renews it, for a `<close>` variable.
function lock_methods:hold(wait)
    local link = self.pump:enter()
    if core.is_adopted(self.lock) then
        return held(self, enter(self, true, link:confirm(self.lock)))
    end
    return held(self, enter(self, false, link:acquire(self.lock, wait)))
end

--- Acquires a lock, and renews it, for a `<close>` variable; options as for lock().
function client_methods:hold(name, given)
    local lock = wrap(self, make(2, self.blocking.lock, self.blocking, name, given))
    local link = self.pump:enter()
    return held(lock, enter(lock, false, link:acquire(lock.lock)))
end

local function finish(lock, body, ...)
    local running <close> = guard.new(function() lock.pump:release_later(lock.lock) end)
    local results = table.pack(pcall(body, ...))
    running.passed = true
    local released, message = settle(lock)
    if not results[1] then
        error(results[2], 0)
    elseif not released then
        error(message, 2)
    end
    return table.unpack(results, 2, results.n)
end

--- Calls body(lock) while the lock is held and renewed; options as for lock(). The body may
-- yield.
function client_methods:with_lock(name, given, body)
    if type(body) ~= "function" then
        error("the body must be a function, not " .. type(body), 2)
    end
    local lock = wrap(self, make(2, self.blocking.lock, self.blocking, name, given))
    local link = self.pump:enter()
    local ok, message, code, word, details = held(lock, enter(lock, false, link:acquire(lock.lock)))
    if not ok then
        return nil, message, code, word, details
    end
    return finish(lock, body, lock)
end

-- -------------------------------------------------------------- compare-and-set

local function lock_of(given)
    if getmetatable(given) == lock_type then
        return given.lock
    end
    return given
end

-- Steps that a public method makes only to have its arguments checked before it queues for
-- its place: there it has no link, and its time does not run.
local function check_steps(steps, message)
    if not steps then
        error(message, 3)
    end
    steps:free()
end

-- The table of keys may be changed by others meanwhile.
local function run(client, keys, body, o)
    keys = table.move(keys, 1, #keys, 1, {})
    local place <close>, why, code = client.places:take()
    if not place then
        return nil, why, code
    end
    local guard_lock = lock_of(o.guard)
    local steps = assert(core.steps(client.blocking, keys, o.attempts, o.wait, guard_lock))
    return transaction.run(client.pump, place, keys, steps, body)
end

local function check_function(body)
    if type(body) ~= "function" then
        error("the function must be a function, not " .. type(body), 3)
    end
end

local function check_key(key)
    if type(key) ~= "string" then
        error("the key must be a string, not " .. type(key), 3)
    end
end

--- Calls body(tx), which may yield; then writes all that it queued, or nothing.
-- Options and results as for the module sneck.
function client_methods:transaction(keys, body, given)
    local o = options.check(given, TRANSACTION_OPTIONS)
    check_function(body)
    self.pump:enter()
    check_steps(core.steps(self.blocking, keys, o.attempts, o.wait, lock_of(o.guard)))
    return run(self, keys, body, o)
end

-- The value that an update's function has decided on.
local function decided(old, new)
    if new == sneck.KEEP then
        return old
    end
    local text = transaction.text(new)
    if text == false then
        error("the function of update() must return a string, a number, nil or sneck.KEEP, not "
            .. type(new), 0)
    end
    return text
end

--- Changes the string at a key by a function of it, which may yield; returns what it is
-- then.
function client_methods:update(key, body, given)
    local o = options.check(given, UPDATE_OPTIONS)
    check_key(key)
    check_function(body)
    local ttl_ms = core.milliseconds(o.ttl, "ttl")
    self.pump:enter()
    check_steps(core.steps(self.blocking, {key}, o.attempts, o.wait, lock_of(o.guard)))
    local value
    local function change(tx)
        local old = tx:get(key)
        local new = body(old)
        value = decided(old, new)
        if new ~= sneck.KEEP then
            transaction.put(tx, key, value, ttl_ms)
        end
    end
    local results = table.pack(run(self, {key}, change, o))
    if results[1] == nil then
        return table.unpack(results, 1, results.n)
    end
    return value
end

local function check_value(value, what)
    local text = transaction.text(value)
    if text == false then
        error(("%s must be a string, a number or nil, not %s"):format(what, type(value)), 3)
    end
    return text
end

local function compare(client, key, expected, new, ttl_ms)
    local matched
    local results = table.pack(run(client, {key}, function(tx)
        matched = tx:get(key) == expected
        if matched then
            transaction.put(tx, key, new, ttl_ms)
        end
    end, {}))
    if results[1] == nil then
        return table.unpack(results, 1, results.n)
    end
    return matched
end

--- Changes the string at a key if it is the expected one; returns whether it was.
function client_methods:compare_and_set(key, expected, new, given)
    local o = options.check(given, SET_OPTIONS)
    check_key(key)
    expected, new = check_value(expected, "the expected value"), check_value(new, "the new value")
    local ttl_ms = core.milliseconds(o.ttl, "ttl")
    self.pump:enter()
    check_steps(core.steps(self.blocking, {key}))
    return compare(self, key, expected, new, ttl_ms)
end

--- Deletes a key if the string there is the expected one; returns whether it was.
function client_methods:compare_and_delete(key, expected)
    check_key(key)
    if expected == nil then
        error("the expected value must be a string or a number, not nil", 2)
    end
    expected = check_value(expected, "the expected value")
    self.pump:enter()
    check_steps(core.steps(self.blocking, {key}))
    return compare(self, key, expected, nil, 0)
end

return async
