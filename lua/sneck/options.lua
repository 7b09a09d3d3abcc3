--- Tables of options: which names there are.
local options = {}

local DEFAULTS = {}

--- Makes a set of names.
function options.set_of(...)
    local set = {text = table.concat({...}, ", ")}
    for _, name in ipairs({...}) do
        set[name] = true
    end
    return set
end

--- Gives the options, or none for nil; throws when a name is not known.
-- Level 3 is the user's line: the public functions call this themselves.
function options.check(given, known)
    if given == nil then
        return DEFAULTS
    end
    if type(given) ~= "table" then
        error("options must be a table, not " .. type(given), 3)
    end
    for name in pairs(given) do
        if known[name] ~= true then
            error(("unknown option %s: there are %s"):format(tostring(name), known.text), 3)
        end
    end
    return given
end

return options
