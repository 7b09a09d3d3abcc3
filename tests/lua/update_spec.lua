-- Changing the value of one key without a lock: update and compare_and_set, as Lua has them.
local sneck = require "sneck"
local support = require "support"

local add_one, refused = support.add_one, support.refused
local client, other, name

before_each(function()
    client, other = support.connect(), support.connect()
    name = support.name()
end)

describe("update", function()
    it("writes what its function returns, and gives it", function()
        for new, stored in pairs({text = "text", ["\0\255"] = "\0\255", [""] = "", [7] = "7",
            [0.1] = "0.1", [3.0] = "3"}) do
            local given = {}
            local function set(old)
                given[#given + 1] = old or "absent"
                return new
            end
            client:execute("DEL", name)
            assert.same({stored, n = 1}, table.pack(client:update(name, set)))
            assert.equal(stored, client:update(name, set))
            assert.equal(stored, client:execute("GET", name))
            assert.same({"absent", stored}, given)
        end
    end)

    it("may leave or delete the value", function()
        local function keep() return sneck.KEEP end
        assert.same({n = 1}, table.pack(client:update(name, keep)))
        client:execute("SET", name, "old")
        assert.equal("old", client:update(name, keep))
        assert.equal("old", client:execute("GET", name))
        assert.same({n = 1}, table.pack(client:update(name, function() end)))
        assert.equal(0, client:execute("EXISTS", name))
        assert.equal("sneck.KEEP", tostring(sneck.KEEP))
    end)

    it("keeps the expiry unless told", function()
        client:execute("SET", name, 1, "EX", 5000)
        assert(client:update(name, add_one))
        assert.is_true(client:execute("TTL", name) > 1000)
        assert(client:update(name, add_one, {ttl = 900}))
        local left = client:execute("TTL", name)
        assert.is_true(left > 100 and left <= 900)
    end)

    it("runs its function again after a conflict", function()
        local seen = {}
        assert.equal("15", client:update(name, function(old)
            seen[#seen + 1] = old or "absent"
            if #seen < 6 then
                other:execute("INCR", name)
            end
            return tonumber(old or 0) + 10
        end))
        assert.same({"absent", "1", "2", "3", "4", "5"}, seen)
    end)

    it("tells attempts, time and keys of a conflict", function()
        local runs = 0
        local function meet()
            runs = runs + 1
            other:execute("INCR", name)
            return "lost"
        end
        local results = table.pack(client:update(name, meet, {attempts = 3}))
        assert.equal(5, results.n)
        assert.is_nil(results[1])
        assert.matches(name .. ".* 3 attempts", results[2])
        assert.equal("CONFLICT", results[3])
        assert.is_nil(results[4])
        assert.same({attempts = 3, waited = results[5].waited, keys = {name}}, results[5])
        assert.equal("float", math.type(results[5].waited))
        assert.equal(3, runs)
        assert.equal("3", client:execute("GET", name))
        local details = select(5, client:update(name, meet, {attempts = 10 ^ 6, wait = 0.05}))
        assert.is_true(details.attempts < 10 ^ 6)
        assert.is_true(details.waited >= 0.05)
        details = select(5, client:update(name, meet, {attempts = 2, wait = math.huge}))
        assert.equal(2, details.attempts)
        details = select(5, client:update(name, meet, {wait = 0}))
        assert.equal(1, details.attempts)
    end)

    it("takes no other values", function()
        for _, value in ipairs({true, {}, print}) do
            refused("the function of update%(%) must return .* sneck.KEEP, not " .. type(value),
                function() client:update(name, function() return value end) end)
        end
        assert.equal(0, client:execute("EXISTS", name))
    end)

    it("fails with the server's word where there is no string", function()
        client:execute("RPUSH", name, "x")
        local none, message, code, word = client:update(name, add_one)
        assert.is_nil(none)
        assert.matches("WRONGTYPE", message)
        assert.same({"SERVER", "WRONGTYPE"}, {code, word})
    end)
end)

describe("compare_and_set", function()
    it("writes if the value is the expected one", function()
        assert.is_false(client:compare_and_set(name, "x", "y"))
        assert.is_true(client:compare_and_set(name, nil, 1))
        assert.is_false(client:compare_and_set(name, nil, 2))
        assert.is_false(client:compare_and_set(name, "", 2))
        assert.equal("1", client:execute("GET", name))
        assert.is_true(client:compare_and_set(name, 1, ""))
        assert.is_true(client:compare_and_set(name, "", "new\0", {ttl = 900}))
        assert.is_true(client:execute("TTL", name) > 100)
        assert.is_false(client:compare_and_delete(name, "new"))
        assert.same({true, n = 1}, table.pack(client:compare_and_delete(name, "new\0")))
        assert.is_true(client:compare_and_set(name, nil, nil))
        assert.equal(0, client:execute("EXISTS", name))
        client:execute("SET", name, "old")
        assert.is_true(client:compare_and_set(name, "old"))
        assert.equal(0, client:execute("EXISTS", name))
    end)

    it("fails with a code", function()
        client:execute("RPUSH", name, "x")
        local none, _, code, word = client:compare_and_set(name, "x", "y")
        assert.is_nil(none)
        assert.same({"SERVER", "WRONGTYPE"}, {code, word})
        assert.equal("CONNECTION", select(3, support.nowhere():compare_and_delete(name, 1)))
    end)
end)

describe("misuse", function()
    local away
    local function nothing() end

    before_each(function()
        away = support.nowhere()
    end)

    it("of update throws before anything is sent", function()
        refused("the function must be a function, not nil", function() away:update("k") end)
        refused("the key must be a string, not nil", function() away:update(nil, nothing) end)
        refused("transaction: a key is NULL or longer", function()
            away:update(("x"):rep(2 ^ 20 + 1), nothing)
        end)
        refused("options must be a table, not number", function() away:update("k", nothing, 5) end)
        assert.equal("CONNECTION", select(3, away:update("k", nothing, {attempts = 2.0, wait = 1})))
    end)

    it("of compare_and_set throws before anything is sent", function()
        refused("the key must be a string, not number", function()
            away:compare_and_set(1, "a", "b")
        end)
        refused("the expected value must be .- not table", function()
            away:compare_and_set("k", {}, 1)
        end)
        refused("the new value must be .- not boolean", function()
            away:compare_and_set("k", nil, true)
        end)
        refused("the expected value must be .- not nil", function()
            away:compare_and_delete("k")
        end)
        refused("the expected value must be .- not boolean", function()
            away:compare_and_delete("k", true)
        end)
        refused("unknown option attempts: there are ttl", function()
            away:compare_and_set("k", "x", "y", {attempts = 1})
        end)
    end)

    it("of a ttl throws", function()
        for _, value in ipairs({0, -1, 0 / 0, math.huge, "3", false}) do
            refused("ttl must be", function() away:update("k", nothing, {ttl = value}) end)
            refused("ttl must be", function()
                away:compare_and_set("k", "x", "y", {ttl = value})
            end)
        end
    end)
end)
