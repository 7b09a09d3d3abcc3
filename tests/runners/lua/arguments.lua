-- The words of a step, sorted into places and options, and what they stand for.
--
-- An option that a verb does not know is an error, so a mistyped case cannot pass by testing less.
local casefile = require "casefile"

local arguments = {}

--- Sorts words. `places`: how many are no options; nil: any number. The rest are known options.
function arguments.read(words, places, ...)
  local given, known = {options = {}, words = {}}, {}
  for _, key in ipairs({...}) do
    known[key] = true
  end
  for _, word in ipairs(words) do
    if not word.key then
      given[#given + 1], given.words[#given + 1] = word.data, word
    elseif known[word.key] then
      given.options[word.key] = word.data
    else
      casefile.refuse("unknown option")
    end
  end
  if places and #given ~= places then
    casefile.refuse("wrong number of arguments")
  end
  return given
end

--- Reads a time, where there is one.
function arguments.seconds(milliseconds)
  return milliseconds and tonumber(milliseconds) / 1000
end

--- Reads an option that is yes, or not there.
function arguments.flag(text)
  if text and text ~= "yes" then
    casefile.refuse("a flag is yes, or not there")
  end
  return text and true
end

--- Reads a wait that may be without an end.
function arguments.limit(text)
  return text == "forever" and math.huge or arguments.seconds(text)
end

--- Reads the options of a lock object; nil: none is given, so that no new one is to be made.
function arguments.lock_options(options)
  local read = {
    ttl = arguments.seconds(options.ttl),
    label = options.label,
    fair = arguments.flag(options.fair),
    poll = arguments.seconds(options.poll),
    renew = arguments.flag(options.renew),
    fence = arguments.flag(options.fence),
    max_hold = arguments.seconds(options.max_hold),
    kind = options.kind,
  }
  return next(read) and read
end

--- Reads a value; the bare word `nil` is no value.
function arguments.value_of(word)
  return not casefile.is(word, "nil") and word.data or nil
end

--- Gives every word as an argument.
function arguments.whole(words)
  local all = {}
  for i, word in ipairs(words) do
    all[i] = casefile.whole(word)
  end
  return table.unpack(all)
end

--- Writes a time.
function arguments.milliseconds(time)
  return math.floor(time * 1000 + 0.5)
end

return arguments
