--- A link that the coroutines of one loop share, and how they wait for their ops.
--
-- A loop, whichever it is, has these functions; `here` is what running() gave:
--
--     loop.running()      the loop as a value, or nil and why the caller cannot wait
--     loop.ticket()       what stands for one wait of the running coroutine
--     loop.sleep_on(ticket)  suspends it; may come back early
--     loop.wake(ticket)   has it go on soon, not at once; harmless when it is closed
--     loop.watch(here, source, turn)  calls turn() whenever the source should be
--                         stepped. Gives changed(), to be called when anything else has
--                         touched the source, and stop()
--
-- The source is a link or an op: fds(), timeout(), generation(). It is watched only
-- while something is under way, so that it keeps no loop from its end.
local core = require "sneck.core"
local guard = require "sneck.async.guard"

local pump = {}
pump.__index = pump

--- Makes a pump of a loop and a blocking client.
function pump.new(loop, client)
    local link, message, code = core.link(client)
    if not link then
        return nil, message, code
    end
    return setmetatable({
        loop = loop,
        client = client,
        link = link,
        waiters = {}, -- by op of the link: who waits for it, or DETACHED
        interrupts = {}, -- by op with its own link: what ends it
    }, pump)
end

local DETACHED = {}

--- Whether the running coroutine can wait here; or nil and why not.
function pump:can_wait()
    local here, why = self.loop.running()
    if not here then
        return nil, why
    elseif self.here and self.here ~= here then
        return nil, "this client belongs to another loop: make one for each loop"
    end
    self.here = here
    return true
end

--- Gives the link to start an op on; throws where the user's call cannot wait.
-- A public method calls this: level 3 is the user's line.
function pump:enter()
    local ok, why = self:can_wait()
    if not ok then
        error(why, 3)
    end
    if not self.watch then
        self.link:step() -- notices a connection that was closed while nobody watched
    end
    return self.link
end

-- -------------------------------------------------------------------- driving

local function wake(self, waiter)
    waiter.done = true
    if waiter ~= DETACHED then
        self.loop.wake(waiter.ticket)
    end
end

local function is_idle(self)
    return next(self.waiters) == nil and self.link:quiet()
end

local function rest(self)
    if self.watch then
        self.watch.stop()
        self.watch = nil
    end
    if self.closed then
        self.link:close()
        self.link = assert(core.link(self.client)) -- on it, calls fail with INVALID
    end
end

local function turn(self)
    local link = self.link
    link:step()
    local op = link:ended()
    while op do
        local waiter = self.waiters[op]
        self.waiters[op] = nil
        if waiter then
            wake(self, waiter)
        end
        op = link:ended()
    end
    if is_idle(self) then
        rest(self)
    end
end

-- To be called whenever an op was started or ended by hand. Where nothing is left to do, no
-- turn would come that notices.
local function changed(self)
    if is_idle(self) then
        rest(self)
        return
    elseif not self.watch then
        self.watch = self.loop.watch(self.here, self.link, function()
            if self.watch then
                turn(self)
            end
        end)
    end
    self.watch.changed()
end

-- -------------------------------------------------------------------- waiting

--- Waits for an op and returns its result. What follows `abandon` is what the function
-- gave that started it: an op, true if it was done at once, or a failure. When the
-- coroutine is closed meanwhile, the op is cancelled, and abandon(op) is called with it; or,
-- if that is false, the op goes on by itself.
function pump:await(abandon, op, ...)
    if not op or op == true then
        return op, ...
    end
    local waiter = {ticket = self.loop.ticket(), done = false, goes_on = abandon == false}
    local waiting <close> = guard.new(function()
        self.loop.wake(waiter.ticket)
        if abandon == false then
            self.waiters[op] = not waiter.done and DETACHED or nil
            return
        end
        self.waiters[op] = nil
        op:cancel()
        if abandon then
            abandon(op)
        end
        changed(self)
    end)
    self.waiters[op] = waiter
    changed(self)
    repeat
        self.loop.sleep_on(waiter.ticket)
    until waiter.done
    waiting.passed = true
    return op:result()
end

--- Lets a lock that was held be released without anybody who waits for that. Throws
-- nothing, and needs no coroutine.
function pump:release_later(lock)
    self:go_on((self.link:settle(lock)))
end

--- Lets an op that was started go on without anybody who waits for it.
function pump:go_on(op)
    if op and op ~= true and self.here then
        self.waiters[op] = DETACHED
        changed(self)
    end
end

--- Ends what waits, with INTERRUPTED, and closes the client. Releases go on.
function pump:close()
    self.closed = true
    for op, waiter in pairs(self.waiters) do
        if waiter ~= DETACHED and not waiter.goes_on then
            op:cancel()
            self.waiters[op] = nil
            wake(self, waiter)
        end
    end
    for _, interrupt in pairs(self.interrupts) do
        interrupt()
    end
    self.client:close()
    changed(self)
end

-- ------------------------------------------------------- ops with their own link

-- Waits for an op that has not ended. When the coroutine is closed, the op is cancelled.
local function await_alone(self, op, goes_on)
    local ticket, done = self.loop.ticket(), false
    local function wake_up()
        done = true
        self.interrupts[op] = nil
        self.loop.wake(ticket)
    end
    local stop = self:step_later(op, wake_up)
    local function interrupt()
        stop()
        op:cancel()
        wake_up()
    end
    local waiting <close> = guard.new(interrupt)
    self.interrupts[op] = not goes_on and interrupt or nil
    repeat
        self.loop.sleep_on(ticket)
    until done
    waiting.passed = true
end

-- Where no step can be taken since the client was closed, the transaction had begun before
-- that, and is interrupted.
local function given(self, ...)
    local result, _, code = ...
    if self.closed and not result and code == "INVALID" then
        return nil, "transaction: the client was closed under way; nothing was written",
            "INTERRUPTED"
    end
    return ...
end

--- As await(), for the first op of a transaction. When the coroutine is closed, the op is
-- cancelled.
function pump:await_begin(op, ...)
    if not op then
        return nil, ...
    elseif not op:step() then
        await_alone(self, op, false)
    end
    return op:result()
end

--- The same for the ops after that.
function pump:await_step(op, ...)
    return given(self, self:await_begin(op, ...))
end

--- The same for the last op of a transaction, which goes on when the client is closed.
function pump:await_last(op)
    if op and not op:step() then
        await_alone(self, op, true)
    end
end

--- Steps an op until it has ended, and calls a function then; returns how to stop that.
function pump:step_later(op, ended)
    local watch, stopped
    watch = self.loop.watch(self.here, op, function()
        if not stopped and op:step() then
            stopped = true
            watch.stop()
            ended()
        end
    end)
    watch.changed()
    return function()
        if not stopped then
            stopped = true
            watch.stop()
        end
    end
end

return pump
