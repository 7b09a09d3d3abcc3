--- Guards: to-be-closed values that tell a coroutine that was closed from one that went on.
--
--     local guard <close> = new_guard(function() ... end)
--     coroutine.yield()
--     guard.passed = true
--
-- The function is called at the end of the block unless `passed` is set.
local guard = {}

local meta = {
    __close = function(self)
        if not self.passed then
            self.abandon()
        end
    end,
}

--- Makes a guard.
function guard.new(abandon)
    return setmetatable({abandon = abandon, passed = false}, meta)
end

return guard
