--- Whether the running coroutine can be suspended here.
local waiting = {}

local NOWHERE = "nothing can wait here: in a coroutine that is being closed, or in a function"
    .. " that C code calls, such as one given to string.gsub() or table.sort()"

--- Returns true; or nil and why not, where `how` tells how a coroutine is made.
function waiting.check(how)
    local _, is_main = coroutine.running()
    if is_main then
        return nil, "call this inside of a coroutine: " .. how
    elseif not coroutine.isyieldable() then
        return nil, NOWHERE
    end
    return true
end

return waiting
