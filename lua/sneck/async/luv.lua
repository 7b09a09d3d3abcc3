--- The loop of luv, for any coroutine that its callbacks resume.
--
-- A coroutine goes on in a callback of ours, after the source was stepped. What it throws,
-- the callback throws, once its <close> variables are closed.
local uv = require "luv"
local waiting = require "sneck.async.waiting"

local adapter = {}

local ready = {} -- tickets of those that can go on
local running = false -- whether they are being resumed, or are about to be
local scheduled -- a timer that will

function adapter.running()
    local ok, why = waiting.check("coroutine.wrap(function)() makes one")
    return ok and adapter, why
end

function adapter.ticket()
    return {thread = coroutine.running(), asleep = false}
end

function adapter.sleep_on(ticket)
    ticket.asleep = true
    coroutine.yield()
    ticket.asleep = false
end

-- Calls a function; what it throws is added to a list.
local function keep(thrown, call, ...)
    local ok, what = call(...)
    if not ok then
        thrown.n = thrown.n + 1
        thrown[thrown.n] = what
    end
    return ok
end

local function resume(ticket, thrown)
    if ticket.asleep and coroutine.status(ticket.thread) == "suspended"
        and not keep(thrown, coroutine.resume, ticket.thread) then
        coroutine.close(ticket.thread)
    end
end

local function resume_all(thrown)
    while ready[1] do
        local now = ready
        ready = {}
        for _, ticket in ipairs(now) do
            resume(ticket, thrown)
        end
    end
end

-- One error is thrown as it is. Of several only the texts fit into one.
local function throw(thrown)
    if thrown.n == 1 then
        error(thrown[1], 0)
    end
    for i = 1, thrown.n do
        thrown[i] = tostring(thrown[i])
    end
    error(table.concat(thrown, "\n"), 0)
end

-- A callback: does something, and resumes those who can go on.
local function run(act, ...)
    if running then -- a loop within the loop, by uv.run() in a coroutine
        return act(...)
    end
    local thrown = {n = 0}
    running = true
    keep(thrown, pcall, act, ...)
    resume_all(thrown)
    running = false
    if thrown.n > 0 then
        throw(thrown)
    end
end

local function unschedule()
    scheduled:close()
    scheduled = nil
end

local function on_scheduled()
    run(unschedule)
end

-- Where no callback of ours is about to resume them, a timer is.
function adapter.wake(ticket)
    ready[#ready + 1] = ticket
    if not running and not scheduled then
        scheduled = uv.new_timer()
        scheduled:start(0, 0, on_scheduled)
    end
end

local function close_polls(watch)
    for _, poll in ipairs(watch.polls) do
        poll:close()
    end
    watch.polls, watch.events = {}, {}
end

-- Has the loop wait for what the source wants now.
local function update(watch)
    local generation, entries = watch.source:generation(), watch.source:fds()
    if generation ~= watch.generation then
        close_polls(watch)
        for i, entry in ipairs(entries) do
            watch.polls[i] = assert(uv.new_poll(entry.fd))
        end
        watch.generation = generation
    end
    for i, entry in ipairs(entries) do
        if watch.events[i] ~= entry.events then
            watch.polls[i]:start(entry.events, watch.step)
            watch.events[i] = entry.events
        end
    end
    local timeout = watch.source:timeout()
    if timeout then
        watch.timer:start(math.ceil(timeout * 1000), 0, watch.step)
    else
        watch.timer:stop()
    end
end

function adapter.watch(_, source, turn)
    local watch = {source = source, polls = {}, events = {}, timer = uv.new_timer()}
    local stopped = false
    function watch.changed()
        if not stopped then
            update(watch)
        end
    end
    function watch.stop()
        stopped = true
        close_polls(watch)
        watch.timer:close()
    end
    local function step()
        if not stopped then
            turn()
            watch.changed()
        end
    end
    function watch.step()
        run(step)
    end
    return watch
end

return adapter
