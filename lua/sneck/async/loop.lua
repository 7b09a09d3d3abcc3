--- The loop for plain coroutines: poll(2), a queue of those that can go on, and sleeps.
--
-- A coroutine that waits is kept by the loop. One that yields by itself goes on in the
-- next turn.
local core = require "sneck.core"
local guard = require "sneck.async.guard"
local waiting = require "sneck.async.waiting"

local loop = {}
loop.__index = loop

local ASLEEP = {} -- what a coroutine yields that wake() will resume
local LONGEST = 3600 -- seconds of one wait for descriptors, which takes no more than a year
local HOW = "loop:spawn(function) makes one"

--- Makes a loop.
function loop.new()
    local self = {
        threads = {}, -- those that have not ended, as keys
        watches = {}, -- as keys
        sleepers = {}, -- tickets by their times, as keys
        queue = {}, first = 1, last = 0, -- tickets of those that can go on
    }
    function self.running()
        local ok, why = waiting.check(HOW)
        if ok and coroutine.running() ~= self.current then
            return nil, "this coroutine is not one of the client's loop: loop:spawn() makes them"
        end
        return ok and self, why
    end
    function self.ticket()
        return {thread = coroutine.running(), asleep = false}
    end
    function self.sleep_on(ticket)
        ticket.asleep = true
        coroutine.yield(ASLEEP)
    end
    function self.wake(ticket)
        if ticket.asleep then
            self:push(ticket)
        end
    end
    function self.watch(_, source, turn)
        local watch = {source = source, turn = turn, changed = function() end}
        function watch.stop()
            self.watches[watch] = nil
        end
        self.watches[watch] = true
        return watch
    end
    return setmetatable(self, loop)
end

function loop:push(ticket)
    ticket.asleep = false
    self.last = self.last + 1
    self.queue[self.last] = ticket
end

--- Makes a coroutine that calls a function with arguments once the loop runs; returns it.
-- coroutine.close() ends it at any time.
function loop:spawn(body, ...)
    if type(body) ~= "function" then
        error("spawn() needs a function, not " .. type(body), 2)
    end
    local thread = coroutine.create(body)
    self.threads[thread] = true
    self:push({thread = thread, arguments = table.pack(...)})
    return thread
end

--- Lets the running coroutine sleep for some seconds.
function loop:sleep(seconds)
    local here, why = self.running()
    if not here then
        error(why, 2)
    elseif type(seconds) ~= "number" or not (seconds >= 0 and seconds < math.huge) then
        error("sleep() needs a number of seconds, 0 or more", 2)
    end
    local ticket = self.ticket()
    local sleeping <close> = guard.new(function()
        self.sleepers[ticket] = nil
        self.wake(ticket)
    end)
    self.sleepers[ticket] = core.clock() + seconds
    self.sleep_on(ticket)
    sleeping.passed = true
end

-- Resumes one; throws what it threw, after its <close> variables were closed.
local function resume(self, ticket)
    local thread, arguments = ticket.thread, ticket.arguments or {n = 0}
    local ok, what = true, nil
    if coroutine.status(thread) == "suspended" then
        self.current = thread
        ok, what = coroutine.resume(thread, table.unpack(arguments, 1, arguments.n))
        self.current = nil
    end
    if coroutine.status(thread) == "suspended" then
        if what ~= ASLEEP then
            self:push({thread = thread})
        end
        return
    end
    self.threads[thread] = nil
    if not ok then
        coroutine.close(thread)
        error(what, 0)
    end
end

local function run_ready(self)
    for at = self.first, self.last do
        local ticket = self.queue[at]
        self.queue[at], self.first = nil, at + 1
        resume(self, ticket)
    end
end

local function earlier(one, other)
    return one and other and math.min(one, other) or one or other
end

local function wake_sleepers(self)
    local now, left = core.clock(), nil
    for ticket, time in pairs(self.sleepers) do
        if time <= now then
            self.sleepers[ticket] = nil
            self:push(ticket)
        else
            left = earlier(left, time - now)
        end
    end
    return left
end

local function wait(self)
    local entries, timeout = {}, earlier(wake_sleepers(self), LONGEST)
    for watch in pairs(self.watches) do
        for _, entry in ipairs(watch.source:fds()) do
            entries[#entries + 1] = entry
        end
        timeout = earlier(timeout, watch.source:timeout())
    end
    if self.first <= self.last then
        timeout = 0
    end
    core.poll(entries, timeout)
    for watch in pairs(self.watches) do
        watch.turn()
    end
end

--- Runs until every coroutine has ended and all that they left behind is done. Throws
-- what a coroutine threw; the others go on when run() is called again.
function loop:run()
    if self.current then
        error("the loop runs already", 2)
    end
    while true do
        run_ready(self)
        if next(self.threads) == nil and next(self.watches) == nil then
            return
        end
        wait(self)
    end
end

return loop
