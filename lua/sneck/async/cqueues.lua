--- The loops of cqueues: a client belongs to the controller that first called it.
--
-- While something is under way, a coroutine of the controller's steps the source.
local cqueues = require "cqueues"
local condition = require "cqueues.condition"

local adapter = {}

function adapter.running()
    local controller = cqueues.running()
    if not controller then
        return nil, "call this inside of a coroutine of a cqueues controller: cq:wrap(function)"
    end
    return controller
end

adapter.ticket = condition.new

function adapter.sleep_on(ticket)
    ticket:wait()
end

function adapter.wake(ticket)
    ticket:signal()
end

-- cqueues remembers descriptors by their numbers, which it must forget with them.
local function forget(watch)
    for _, entry in ipairs(watch.entries) do
        cqueues.cancel(entry.fd)
    end
    watch.entries = {}
end

local function refresh(watch)
    local generation = watch.source:generation()
    if generation ~= watch.generation then
        forget(watch)
        watch.generation = generation
    end
end

local function wait(watch)
    local polls = {watch.touched}
    watch.entries = watch.source:fds()
    for _, entry in ipairs(watch.entries) do
        polls[#polls + 1] = {pollfd = entry.fd, events = entry.events}
    end
    polls[#polls + 1] = watch.source:timeout()
    cqueues.poll(table.unpack(polls))
end

function adapter.watch(controller, source, turn)
    local watch = {source = source, entries = {}, touched = condition.new()}
    local stopped = false
    function watch.changed()
        if not stopped then
            refresh(watch)
        end
        watch.touched:signal()
    end
    function watch.stop()
        stopped = true
        forget(watch)
        watch.touched:signal()
    end
    controller:wrap(function()
        while not stopped do
            turn()
            if not stopped then
                refresh(watch)
                wait(watch)
            end
        end
    end)
    return watch
end

return adapter
