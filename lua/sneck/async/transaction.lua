--- Transactions whose function may yield: the attempts of one call, by ops.
--
-- Each has a connection of its own while it runs. There are at most `connections` of
-- them at once, first come first served; one within the function of another does not
-- queue, as it would wait for itself.
local core = require "sneck.core"
local guard = require "sneck.async.guard"

local transaction = {}

-- --------------------------------------------------------------------- places

local places = {}
places.__index = places

--- Makes the places for so many transactions at once.
function transaction.places(loop, count)
    return setmetatable({
        loop = loop,
        free = count,
        queue = {}, first = 1, last = 0, -- who waits; false: it has given up
        threads = setmetatable({}, {__mode = "k"}), -- those in a transaction
        closed = false, -- then nobody queues
    }, places)
end

local function wake(self, waiter, outcome)
    waiter.outcome = outcome
    self.loop.wake(waiter.ticket)
end

local function pass_on(self)
    while self.first <= self.last do
        local waiter = self.queue[self.first]
        self.queue[self.first], self.first = nil, self.first + 1
        if waiter then
            wake(self, waiter, "granted")
            return
        end
    end
    self.free = self.free + 1
end

-- Returns whether it was granted a place.
local function wait(self)
    local waiter, at = {ticket = self.loop.ticket()}, self.last + 1
    self.queue[at], self.last = waiter, at
    local waiting <close> = guard.new(function()
        self.loop.wake(waiter.ticket)
        if waiter.outcome == "granted" then
            pass_on(self)
        elseif not waiter.outcome then
            self.queue[at] = false
        end
    end)
    repeat
        self.loop.sleep_on(waiter.ticket)
    until waiter.outcome
    waiting.passed = true
    return waiter.outcome == "granted"
end

-- Given back by hand or, where a coroutine was left to the collector, by that.
local place = {}
place.__index = place

function place:give_back()
    if self.taken then
        self.taken = false
        pass_on(self.places)
    end
end

place.__gc = place.give_back
place.__close = place.give_back

--- Takes a place, for a `<close>` variable; waits until there is one. Returns nil, message,
-- code if the places are closed meanwhile.
function places:take()
    if self.closed or self.threads[coroutine.running()] then
        return setmetatable({taken = false, places = self}, place)
    elseif self.free > 0 then
        self.free = self.free - 1
    elseif not wait(self) then
        return nil, "transaction: the client was closed before it began; nothing was written",
            "INTERRUPTED"
    end
    return setmetatable({taken = true, places = self}, place)
end

--- Ends the waits of those who queue.
function places:close()
    self.closed = true
    for at = self.first, self.last do
        local waiter = self.queue[at]
        self.queue[at] = nil
        if waiter then
            wake(self, waiter, "closed")
        end
    end
    self.first = self.last + 1
end

-- Gives it another owner.
local function move(self)
    local moved = setmetatable({taken = self.taken, places = self.places}, place)
    self.taken = false
    return moved
end

-- ------------------------------------------------------------- for the function

local tx_methods = {}
local tx_type = {__index = tx_methods}

function tx_type.__tostring(tx)
    local state = tx.failure and tx.failure[2] or tx.aborted and "aborted" or "running"
    return ("sneck.async.transaction (%s)"):format(tx.runs and state or "ended")
end

-- Level 3 is the user's line. What unwinds the function is the object itself.
local function check(tx)
    if getmetatable(tx) ~= tx_type then
        error("this is no transaction: call its functions with a colon", 3)
    elseif not tx.runs then
        error("the transaction has ended: use it inside of its function only", 3)
    elseif tx.aborted then
        error(tx, 0)
    end
end

-- For the methods that wait.
local function check_wait(tx)
    local ok, why = tx.pump:can_wait()
    if not ok then
        error(why, 3)
    end
end

local function given(tx, ...)
    if select("#", ...) > 1 then
        tx.failure = table.pack(...)
        error(tx, 0)
    end
    return ...
end

--- Reads now: any command that does not block.
function tx_methods:execute(...)
    check(self)
    check_wait(self)
    return given(self, self.pump:await_step(self.steps:read(...)))
end

--- Reads the string at a key now.
function tx_methods:get(key)
    check(self)
    check_wait(self)
    if type(key) ~= "string" then
        error("the key must be a string, not " .. type(key), 2)
    end
    return given(self, self.pump:await_step(self.steps:read("GET", key)))
end

--- Adds a command to those that are run at the end.
function tx_methods:queue(...)
    check(self)
    return given(self, self.steps:queue(...))
end

--- Watches more keys, from the next read on.
function tx_methods:watch(...)
    check(self)
    for i = 1, select("#", ...) do
        given(self, self.steps:watch((select(i, ...))))
    end
    return true
end

--- Ends it with nothing written.
function tx_methods:abort()
    check(self)
    self.aborted = true
    error(self, 0)
end

--- How often the function was run before.
function tx_methods:conflicts()
    check(self)
    return self.steps:conflicts()
end

-- ------------------------------------------------------------------- its runs

-- How one run of the function ended: a table that has `thrown`, or `aborted`, or what a
-- step gave, true or a failure.
local function run_function(session)
    local tx = setmetatable({steps = session.steps, pump = session.pump, runs = true}, tx_type)
    local threads, thread = session.place.places.threads, coroutine.running()
    local outer = threads[thread]
    threads[thread] = true
    local ok, what = pcall(session.body, tx)
    threads[thread] = outer
    tx.runs = false
    if not ok and not (what == tx and (tx.aborted or tx.failure)) then
        return {thrown = true, what}
    elseif tx.aborted then
        return {aborted = true}
    end
    return ok and {true} or tx.failure
end

local function run_attempts(session)
    local pump, steps = session.pump, session.steps
    local await = pump.await_begin
    while true do
        local outcome = table.pack(await(pump, steps:begin()))
        await = pump.await_step
        if not outcome[1] then -- CONFLICT: attempts or time are used up
            return outcome
        end
        outcome = run_function(session)
        if outcome[1] == true then
            outcome = table.pack(pump:await_step(steps:commit()))
            outcome.committed = outcome[1]
        end
        if outcome.thrown or outcome[3] ~= "CONFLICT" then
            return outcome
        end
    end
end

-- Leaves no watch and no turn behind, in the background.
local function abandon(session)
    local kept = move(session.place)
    local function ended()
        session.steps:free()
        kept:give_back()
    end
    local op = session.steps:unwatch()
    if op and not op:step() then
        session.pump:step_later(op, ended)
    else
        ended()
    end
end

local function fail(session, keys, outcome)
    local _, message, code, word, results = table.unpack(outcome, 1, 5)
    local attempts, waited, failed = session.steps:report()
    if code == "CONFLICT" then
        return nil, message, code, nil,
            {attempts = attempts, waited = waited, keys = table.move(keys, 1, #keys, 1, {})}
    elseif failed and results then
        return nil, message, code, word, {index = failed, results = results}
    end
    return table.unpack(outcome, 1, code == "SERVER" and 4 or 3)
end

local function conclude(session, keys, outcome)
    if outcome.thrown then
        error(outcome[1], 0)
    elseif outcome.aborted then
        return nil
    elseif outcome.committed then
        return outcome.committed == true and {n = 0} or outcome.committed
    end
    return fail(session, keys, outcome)
end

--- Runs a function until its writes are committed. `steps` are new; `taken` is a place,
-- which the caller gives back.
function transaction.run(pump, taken, keys, steps, body)
    local session = {pump = pump, steps = steps, body = body, place = taken}
    local running <close> = guard.new(function() abandon(session) end)
    local outcome = run_attempts(session)
    if not outcome.committed then
        pump:await_last(steps:unwatch())
    end
    running.passed = true
    local results = table.pack(pcall(conclude, session, keys, outcome))
    steps:free()
    if not results[1] then
        error(results[2], 0)
    end
    return table.unpack(results, 2, results.n)
end

--- Adds a key's new value to the commit, nil to delete it; with a ttl of 0 the key keeps its
-- expiry.
function transaction.put(tx, key, value, ttl_ms)
    check(tx)
    return given(tx, tx.steps:put(key, value, ttl_ms))
end

--- A value as it is sent; nil stays nil. False: it is none.
function transaction.text(value)
    if value == nil then
        return nil
    end
    return core.text(value) or false
end

return transaction
