-- What a step led to, as words, and whether a case expected it.
--
-- What came from the library as bytes is a quoted word, and never mistaken for `nil`, `[` or `]`,
-- which are words with a meaning.
local casefile = require "casefile"

local outcome = {}

local is = casefile.is

local CODES = {
  BUSY = true, TIMEOUT = true, NOT_OWNER = true, UNKNOWN = true, CONNECTION = true,
  SERVER = true, PROTOCOL = true, INVALID = true, INTERRUPTED = true, NO_MEMORY = true,
  CONFLICT = true, QUORUM = true,
}

--- Makes an outcome of keywords.
function outcome.of(...)
  local words = {}
  for i, text in ipairs({...}) do
    words[i] = {data = text, quoted = false}
  end
  return words
end

local function value(data)
  return {data = math.type(data) and ("%d"):format(data) or data, quoted = true}
end

--- Succeeds, with one value where there is one.
function outcome.ok(data)
  local words = outcome.of("ok")
  words[2] = data ~= nil and value(data) or nil
  return words
end

--- Succeeds with yes or no.
function outcome.yes(truth)
  return outcome.ok(truth and "yes" or "no")
end

--- Fails with the name of a status and, where there is one, the server's code word.
function outcome.fail(code, word)
  return outcome.of("fail", code, word)
end

local function add_reply(words, reply)
  if reply == nil then
    words[#words + 1] = outcome.of("nil")[1]
  elseif type(reply) ~= "table" then
    words[#words + 1] = value(reply)
  elseif reply.err then
    words[#words + 1] = value(reply.err)
  else
    words[#words + 1] = outcome.of("[")[1]
    for i = 1, reply.n do
      add_reply(words, reply[i])
    end
    words[#words + 1] = outcome.of("]")[1]
  end
end

--- Tells who waits.
function outcome.labels(waiters)
  local words, labels = outcome.of("ok"), {n = #waiters}
  for i, waiter in ipairs(waiters) do
    labels[i] = waiter.label
  end
  add_reply(words, labels)
  return words
end

--- Tells the reply of a raw command.
function outcome.reply(reply)
  if reply == nil then
    return outcome.of("nil")
  end
  local words = outcome.of("ok")
  add_reply(words, reply)
  return words
end

--- Shows an outcome as one would write it.
function outcome.show(words)
  local shown = {}
  for i, word in ipairs(words) do
    shown[i] = casefile.show(word)
  end
  return table.concat(shown, " ")
end

-- ------------------------------------------------------------------ checking

local function is_variable(word)
  return word and not word.quoted and word.data:find("^%$%l[%l%d_]*$")
end

local function check_values(words)
  for at = 2, #words do
    local word = words[at]
    if is(word, "in") and not (words[at + 1] and words[at + 1].data:find("^%-?%d+%.%.%-?%d+$")) then
      casefile.refuse("in is not followed by A..B")
    end
    if is(word, "above") and not is_variable(words[at + 1]) then
      casefile.refuse("above is not followed by a variable")
    end
    if not word.quoted and word.data:find("^%$") and not is_variable(word) then
      casefile.refuse("not the name of a variable")
    end
  end
end

--- Throws unless a case may expect this.
function outcome.check(expected)
  local head = expected[1]
  if not head then
    casefile.refuse("no outcome")
  elseif is(head, "ok") then
    check_values(expected)
  elseif is(head, "nil") or is(head, "again") or is(head, "...") then
    if #expected > 1 then
      casefile.refuse("more words than the outcome has")
    end
  elseif not is(head, "fail") then
    casefile.refuse("unknown outcome")
  elseif #expected < 2 or #expected > 3 or not CODES[expected[2].data] then
    casefile.refuse("fail is not followed by a known code")
  end
end

-- ----------------------------------------------------------------- comparing

local function is_marker(word)
  return is(word, "nil") or is(word, "[") or is(word, "]")
end

local function integer(text)
  return text and text:find("^%-?%d+$") and math.tointeger(tonumber(text))
end

local function matches_range(limits, got)
  local low, high = limits.data:match("^(%-?%d+)%.%.(%-?%d+)$")
  local number = integer(got.data)
  return low and number and number >= tonumber(low) and number <= tonumber(high)
end

-- Whether it is a number greater than the variable's.
local function matches_above(variable, got, variables)
  local low, number = integer(variables[variable.data:sub(2)]), integer(got.data)
  return low and number and number > low
end

local function matches_variable(name, got, variables)
  if is_marker(got) then
    return false
  end
  variables[name] = variables[name] or got.data
  return variables[name] == got.data
end

local function matches_word(expected, got, variables)
  if is(expected, "any") then
    return true
  end
  if not expected.quoted and expected.data:sub(1, 1) == "$" then
    return matches_variable(expected.data:sub(2), got, variables)
  end
  return is_marker(expected) == is_marker(got) and casefile.whole(expected) == got.data
end

local function says_no_more(expected)
  return (#expected == 1 and is(expected[1], "ok")) or (#expected == 2 and is(expected[1], "fail"))
end

--- Compares, and binds the variables that are new if all is as expected.
function outcome.matches(expected, got, variables)
  local e, g, bound = 1, 1, setmetatable({}, {__index = variables})
  while e <= #expected and g <= #got do
    local same
    if e > 1 and is(expected[e], "in") then
      e = e + 1
      same = matches_range(expected[e], got[g])
    elseif e > 1 and is(expected[e], "above") then
      e = e + 1
      same = matches_above(expected[e], got[g], bound)
    else
      same = matches_word(expected[e], got[g], bound)
    end
    if not same then
      return false
    end
    e, g = e + 1, g + 1
  end
  if e <= #expected or (g <= #got and not says_no_more(expected)) then
    return false
  end
  for name, text in pairs(bound) do
    variables[name] = text
  end
  return true
end

return outcome
