-- Reads case files; the grammar stands in tests/corpus/README.md.
--
-- Steps stay text until they are run, because their words depend on variables. Bytes that came
-- from quotes or from a variable have no meaning; everything with a meaning is a word without
-- them. What cannot be understood is thrown as a table {problem = text}.
local casefile = {}

local ESCAPES = {n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\"}

--- Throws what is wrong with a case.
function casefile.refuse(problem)
  error({problem = problem}, 0)
end

--- Ends the run: the corpus cannot be understood.
function casefile.give_up(message)
  io.stderr:write(message, "\n")
  os.exit(2, true)
end

local function take_line(cases, path, number, line)
  local last = cases[#cases]
  if line:find("^%s*$") or line:find("^%s*#") then
    return
  end
  if line:sub(1, 3) == "== " then
    cases[#cases + 1] = {path = path, title = line:sub(4), attributes = {}, steps = {}}
  elseif not last or (line:sub(1, 1) == ":" and #last.steps > 0) then
    casefile.give_up(("%s:%d: outside of its place: %s"):format(path, number, line))
  elseif line:sub(1, 1) == ":" then
    table.insert(last.attributes, line:sub(2))
  else
    table.insert(last.steps, {line = number, text = line})
  end
end

--- Reads one file into a list of cases.
function casefile.read(path)
  local cases, number = {}, 0
  for line in io.lines(path) do
    number = number + 1
    take_line(cases, path, number, line)
  end
  return cases
end

-- Reads an escape behind its backslash; returns the byte and the place behind it.
local function read_escape(line, at)
  local name = line:sub(at, at)
  if ESCAPES[name] then
    return ESCAPES[name], at + 1
  end
  local digits = line:match("^x([0-9a-f][0-9a-f])", at)
  if not digits then
    casefile.refuse("unknown escape")
  end
  return string.char(tonumber(digits, 16)), at + 3
end

-- Reads a quoted piece and its repeat from behind the opening quote.
local function read_quoted(line, at)
  local pieces = {}
  while true do
    local plain, stop = line:match('^([^"\\]*)(["\\])', at)
    if not plain then
      casefile.refuse("quote is not closed")
    end
    pieces[#pieces + 1] = plain
    at = at + #plain + 1
    if stop == '"' then
      break
    end
    pieces[#pieces + 1], at = read_escape(line, at)
  end
  local times = line:match("^%*(%d+)", at)
  local text = table.concat(pieces):rep(times and tonumber(times) or 1)
  return text, at + (times and #times + 1 or 0)
end

local function read_word(line, at, variables)
  local word = {data = "", quoted = false}
  while at <= #line and not line:find("^[ \t]", at) do
    local char = line:sub(at, at)
    local name = variables and line:match("^%$(%l[%l%d_]*)", at)
    local piece
    if char == '"' then
      piece, at = read_quoted(line, at + 1)
      word.quoted = true
    elseif name then
      piece, at = variables[name] or casefile.refuse("variable is not bound"), at + 1 + #name
      word.quoted = true
    elseif char == "=" and not word.quoted and not word.key and word.data:find("^[%l_]+$") then
      word.key, word.data, piece, at = word.data, "", "", at + 1
    else
      piece, at = char, at + 1
    end
    word.data = word.data .. piece
  end
  return word, at
end

--- Tells whether a word is this keyword.
function casefile.is(word, keyword)
  return word ~= nil and not word.quoted and not word.key and word.data == keyword
end

--- Gives a word as an argument, its key included.
function casefile.whole(word)
  return word.key and word.key .. "=" .. word.data or word.data
end

--- Shows a word as one would write it, cut to a readable length.
function casefile.show(word)
  local whole = casefile.whole(word)
  local text = whole:sub(1, 80):gsub('[^!-~]', function(char)
    return ("\\x%02x"):format(char:byte())
  end)
  return (text == "" and '""' or text) .. (#whole > 80 and "..." or "")
end

--- Cuts a step into words; variables left of `->` are replaced.
function casefile.words(line, variables)
  local words, at = {}, 1
  while true do
    at = line:find("[^ \t]", at)
    if not at or line:sub(at, at) == "#" then
      return words
    end
    words[#words + 1], at = read_word(line, at, variables)
    if casefile.is(words[#words], "->") then
      variables = nil
    end
  end
end

return casefile
