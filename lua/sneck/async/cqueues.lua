--- The loops of cqueues: a client belongs to the controller that first called it.
--
-- While something is under way, a coroutine of the controller's steps the source.
local cqueues = require "cqueues"
local condition = require "cqueues.condition"
local core = require "sneck.core"
local waiting = require "sneck.async.waiting"

local adapter = {}

local HOW = "wrap(controller, function) makes one"

local function pass_on(ok, ...)
    if not ok then
        error((...), 0)
    end
end

--- As controller:wrap(function, ...), but an error ends the blocks that it leaves, as it does
-- elsewhere: cqueues drops a coroutine that threw, with its `<close>` variables as they are.
function adapter.wrap(controller, body, ...)
    if type(body) ~= "function" then
        error("wrap() needs a function, not " .. type(body), 2)
    end
    return controller:wrap(function(...)
        pass_on(pcall(body, ...))
    end, ...)
end

function adapter.running()
    local controller = cqueues.running()
    if not controller then
        return nil, "call this inside of a coroutine of a cqueues controller: " .. HOW
    end
    local ok, why = waiting.check(HOW)
    return ok and controller, why
end

adapter.ticket = condition.new

function adapter.sleep_on(ticket)
    ticket:wait()
end

function adapter.wake(ticket)
    ticket:signal()
end

-- cqueues must be told before a descriptor is closed, but a link closes its own when it
-- must. So what is watched are duplicates.
local function forget(watch)
    for _, own in ipairs(watch.duplicates) do
        cqueues.cancel(own:fd())
        own:close()
    end
    watch.duplicates, watch.generation = {}, nil
end

local function forget_old(watch)
    if watch.generation ~= watch.source:generation() then
        forget(watch)
    end
end

local function wait(watch)
    local polls = {watch.touched}
    forget_old(watch)
    watch.generation = watch.source:generation()
    for i, entry in ipairs(watch.source:fds()) do
        watch.duplicates[i] = watch.duplicates[i] or core.duplicate(entry.fd)
        polls[#polls + 1] = {pollfd = watch.duplicates[i]:fd(), events = entry.events}
    end
    polls[#polls + 1] = watch.source:timeout()
    cqueues.poll(table.unpack(polls))
end

function adapter.watch(controller, source, turn)
    local watch = {source = source, duplicates = {}, touched = condition.new()}
    local stopped = false
    function watch.changed()
        if not stopped then
            forget_old(watch)
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
                wait(watch)
            end
        end
    end)
    return watch
end

return adapter
