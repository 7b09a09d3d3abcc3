-- The three loops that coroutines run on, as one: for the specs of sneck.async.
local async = require "sneck.async"
local cqueues = require "cqueues"
local support = require "support"
local uv = require "luv"

local loops = {names = {"plain", "cqueues", "luv"}}

local makers = {}

function makers.plain()
    local loop = async.loop()
    return {
        loop = loop,
        spawn = function(body, ...) return loop:spawn(body, ...) end,
        run = function() loop:run() end,
        sleep = function(seconds) loop:sleep(seconds) end,
    }
end

-- A controller complains once about each coroutine that was closed, and goes on.
local function run_controller(controller)
    repeat
        local ok, err = controller:loop()
        if not ok and not tostring(err):find("cannot resume dead coroutine", 1, true) then
            error(err, 0)
        end
    until ok
end

-- As the adapter's wrap() does it, but gives the coroutine, for coroutine.close().
local function attach(controller, body, ...)
    local arguments = table.pack(...)
    local thread = coroutine.create(function()
        local ok, err = pcall(body, table.unpack(arguments, 1, arguments.n))
        if not ok then
            error(err, 0)
        end
    end)
    controller:attach(thread)
    return thread
end

function makers.cqueues()
    local controller = cqueues.new()
    return {
        loop = require "sneck.async.cqueues",
        spawn = function(body, ...) return attach(controller, body, ...) end,
        run = function() run_controller(controller) end,
        sleep = cqueues.sleep,
    }
end

local function luv_sleep(seconds)
    local thread, timer = coroutine.running(), uv.new_timer()
    timer:start(math.ceil(seconds * 1000), 0, function()
        timer:close()
        if coroutine.status(thread) == "suspended" then
            assert(coroutine.resume(thread))
        end
    end)
    coroutine.yield()
end

-- luv ends the process for what a callback throws. So it is kept for run().
function makers.luv()
    local thrown
    return {
        loop = require "sneck.async.luv",
        spawn = function(body, ...)
            local thread = coroutine.create(function(...)
                local ok, err = pcall(body, ...)
                thrown = thrown or not ok and {err} or nil
            end)
            assert(coroutine.resume(thread, ...))
            return thread
        end,
        run = function()
            uv.run()
            if thrown then
                error(thrown[1], 0)
            end
        end,
        sleep = luv_sleep,
    }
end

--- Makes a loop of a name: `loop` for async.connect(), spawn(), run() and sleep(). What a
-- coroutine throws, run() throws.
function loops.make(name)
    local made = makers[name]()
    --- Runs a function in a coroutine to its end; returns what it returned.
    function made.call(body, ...)
        local results
        made.spawn(function(...) results = table.pack(body(...)) end, ...)
        made.run()
        return table.unpack(results, 1, results.n)
    end
    --- Stays in a coroutine that another one closes. Not in one long sleep, which some loops
    -- go through to its end although its coroutine is closed.
    function made.stay()
        for _ = 1, 3000 do
            made.sleep(0.01)
        end
        error("it was not closed")
    end
    return made
end

--- What a spec begins with: a loop, a client of the server on it, and a lock name.
function loops.start(loop_name)
    local own = loops.make(loop_name)
    return own, assert(async.connect(own.loop, support.url, support.patient())), support.name()
end

local blocking = support.connect()

--- Tells how many connections have a name.
function loops.count_connections(client_name)
    local list = assert(blocking:execute("CLIENT", "LIST"))
    local _, count = list:gsub(" name=" .. client_name .. " ", "")
    return count
end

--- Tells whether the server has anything of a lock.
function loops.is_left(name)
    return blocking:execute("EXISTS", name, ("{%s}:sneck:queue"):format(name)) ~= 0
end

return loops
