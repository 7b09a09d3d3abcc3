-- What the specs share: clients of the test's server, and names of their own.
local luassert = require "luassert"
local sneck = require "sneck"

local support = {
    url = assert(os.getenv("SNECK_TEST_URL"), "run by tests/lua/test_lua.py"),
    TIMEOUT = 30, -- seconds for an answer; a busy machine may stall for more than the usual 5
}

local names = 0
local this_run = tostring({}):gsub("%W", "")

--- A lock name that nothing else uses.
function support.name()
    names = names + 1
    return ("%s:%d:%d"):format(this_run, os.time(), names)
end

--- The options of a client, with a TIMEOUT.
function support.patient(options)
    options = options or {}
    options.timeout = support.TIMEOUT
    return options
end

--- A client of the server, with options.
function support.connect(options)
    return assert(sneck.connect(support.url, support.patient(options)))
end

--- A client of a server that is not there: whatever would send something fails.
function support.nowhere()
    return assert(sneck.connect("unix:///nonexistent/sneck.socket"))
end

--- Lets another owner take a lock; returns its token.
function support.take(client, name)
    assert(client:execute("SET", name, "another", "PX", 60000))
    return "another"
end

--- Frees everything that can be freed; twice, as finalizers free more.
function support.collect()
    collectgarbage()
    collectgarbage()
end

--- A function for update: the number that is one more, 1 for none.
function support.add_one(old)
    return tonumber(old or 0) + 1
end

--- The call throws an error of its own line, in its own file.
function support.refused(pattern, call)
    local file = debug.getinfo(call, "S").short_src:match("[^/]*$"):gsub("%p", "%%%0")
    local ok, err = pcall(call)
    luassert.is_false(ok)
    luassert.matches("^[^\n]*" .. file .. ":%d+: " .. pattern, err)
end

return support
