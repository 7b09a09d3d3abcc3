-- Where nothing can wait: the call throws, and nothing of it is left.
local loops = require "loops"
local support = require "support"

local blocking = support.connect()

for _, loop_name in ipairs(loops.names) do
    describe("where nothing can wait, in the loop " .. loop_name .. ",", function()
        local own, client, name

        before_each(function()
            own, client, name = loops.start(loop_name)
        end)

        local function in_gsub(call)
            return pcall(string.gsub, "x", ".", function() call() end)
        end

        it("a call throws, and the loop goes on to its end", function()
            own.call(function()
                support.refused("nothing can wait here", function()
                    table.sort({1, 2, 3}, function() client:execute("PING") end)
                end)
                local rlock, lock = client:rlock(name), client:lock(name)
                for _, call in ipairs {
                    function() client:lock(name):acquire() end,
                    function() client:hold(name) end,
                    function() rlock:hold() end,
                    function() lock:release() end,
                    function() client:with_lock(name, nil, error) end,
                    function() client:update(name, error) end,
                } do
                    local ok, err = in_gsub(call)
                    assert.is_false(ok)
                    assert.matches("nothing can wait here", err)
                end
                assert.equal("PONG", client:execute("PING"))
            end)
            assert.is_false(loops.is_left(name))
        end)

        it("a transaction's reads throw, and it may go on", function()
            own.call(function()
                assert(client:transaction({name}, function(tx)
                    support.refused("nothing can wait here", function()
                        table.sort({1, 2, 3}, function() tx:get(name) end)
                    end)
                    assert.is_false((in_gsub(function() tx:execute("GET", name) end)))
                    assert.is_nil(tx:get(name))
                    tx:queue("SET", name, 1)
                end))
            end)
            assert.equal("1", blocking:execute("GET", name))
        end)

        it("the end of a block has its lock released later", function()
            own.call(function()
                local lock = assert(client:hold(name, {ttl = 60}))
                in_gsub(function()
                    local _ <close> = lock
                end)
            end)
            assert.is_false(loops.is_left(name))
        end)
    end)
end
