-- Runs the cases of the corpus against the Lua module and prints how they went.
--
-- What it reads and prints stands in tests/corpus/README.md. A case starts on a server reset by
-- the control socket, with no actor left over.
package.path = arg[0]:gsub("[^/]*$", "") .. "?.lua;" .. package.path

local actor = require "actor"
local casefile = require "casefile"
local mode = require "mode"
local outcome = require "outcome"

local CONTROL_TIMEOUT = 60
local UNTIL_TRIES, UNTIL_PAUSE_MS = 1000, 10

local settings, files = {}, {}
local variables, actors, sockets = {}, {}, {}
local servers -- the addresses of a quorum, through their proxies; nil: there is one server
local plain = {} -- actors for raw commands, by what these begin with
local control
local how -- the mode
local steps, at -- those of the case, and which is under way
local expected -- its outcome

local function send_control(...)
  return control:run("execute", outcome.of(...))
end

-- The control socket answers when the time is over.
local function pause(milliseconds)
  send_control("SLEEP", ("%d"):format(milliseconds))
end

local go_on

--- Throws unless the step under way was expected to lead to this.
local function judge(got)
  if not outcome.matches(expected, got, variables) then
    casefile.refuse(("expected %s got %s"):format(outcome.show(expected), outcome.show(got)))
  end
end

local function new_actor(paths)
  return actor.new(paths or sockets, how, judge, function() go_on() end)
end

local function reset()
  if not casefile.is(send_control("BEGIN", servers and "servers")[1], "ok") then
    casefile.give_up("the server cannot be reset")
  end
end

local function close_plain()
  for _, each in pairs(plain) do
    each:close()
  end
  plain = {}
end

-- `redis` steps are not about what a lost connection does.
local function renew_plain()
  close_plain()
  plain.redis = new_actor()
  for i = 1, servers and #servers or 0 do
    plain["redis" .. i] = new_actor({socket = ("%s/server%d"):format(settings.servers, i)})
  end
end

-- --------------------------------------------------------------------- steps

local MOST = {fault = 2, server = 1} -- arguments

-- Tells the verb of the control socket for a step that begins so, and how many arguments it has
-- at most; nil: none.
local function action(word)
  local name, number = word.data:match("^(%a+)([1-5]?):$")
  local count = servers and #servers or 0
  if not word.quoted and MOST[name] and (tonumber(number) or 0) <= count then
    return name:upper() .. number, MOST[name]
  end
end

local function act(verb, words, most)
  if #words < 1 or #words > most then
    casefile.refuse("wrong number of arguments")
  end
  renew_plain()
  return send_control(verb, words[1].data, words[2] and words[2].data)
end

local function do_words(words, leave)
  local name = words[1].data:match("^(.+):$")
  local rest = table.move(words, 2, #words, 1, {})
  if not name or #rest == 0 then
    casefile.refuse("not an actor with a verb")
  elseif plain[name] then
    return plain[name]:run("execute", rest, leave)
  end
  local verb, most = action(words[1])
  if verb then
    return act(verb, rest, most)
  end
  actors[name] = actors[name] or new_actor({
    socket = sockets.socket, proxy = sockets.proxy, servers = servers,
  })
  if casefile.is(rest[1], "...") then
    return actors[name]:resume(leave)
  end
  local arguments = table.move(rest, 2, #rest, 1, {})
  return actors[name]:run(rest[1].data, arguments, leave)
end

local function run_sleep(words)
  if #words ~= 2 or not words[2].data:find("^%d+$") then
    casefile.refuse("sleep is not followed by milliseconds")
  end
  actor.pass(tonumber(words[2].data), how.sleep)
end

-- Repeats a step until its outcome is the expected one. Returns the last outcome.
local function do_until(words)
  local once = actor.ONCE[words[2] and not words[2].quoted and words[2].data or "..."]
  if once or action(words[1]) or casefile.is(expected[1], "...") then
    casefile.refuse("until stands before a verb that may be repeated")
  end
  local got
  for _ = 1, UNTIL_TRIES do
    got = do_words(words, false)
    if outcome.matches(expected, got, variables) then
      break
    end
    actor.pass(UNTIL_PAUSE_MS, how.sleep)
  end
  return got
end

-- Cuts a step into what to do and the outcome that is expected.
local function split(words)
  local left, right = {}, {}
  local side = left
  for _, word in ipairs(words) do
    if casefile.is(word, "->") then
      side = right
    else
      side[#side + 1] = word
    end
  end
  outcome.check(right)
  return left, right
end

-- Runs a step and throws what is wrong. Returns true when it ends the function of a transaction,
-- whose own end is its outcome; else it has been judged. What it does may run steps itself.
local function run_step(text)
  local words = casefile.words(text, variables)
  if casefile.is(words[1], "sleep") then
    return run_sleep(words)
  end
  local left
  left, expected = split(words)
  local got
  if left[2] and casefile.is(left[2], "until") then
    table.remove(left, 2)
    got = do_until(left)
  else
    got = do_words(left, casefile.is(expected[1], "..."))
  end
  if got == actor.ENDS then
    return true
  end
  judge(got)
end

-- Runs the steps behind the one under way, until one ends the function of a transaction.
function go_on()
  while at < #steps do
    at = at + 1
    if run_step(steps[at].text) then
      return
    end
  end
end

-- --------------------------------------------------------------------- cases

-- How many servers a quorum of this attribute has; nil: it is another one.
local function servers_of(attribute)
  return tonumber(attribute:match("^servers ([1-5])$"))
end

local function begin_case(case)
  servers = nil
  for _, attribute in ipairs(case.attributes) do
    for i = 1, servers_of(attribute) or 0 do
      servers = servers or {}
      servers[i] = ("unix://%s/proxy%d"):format(settings.servers, i)
    end
  end
  reset()
  renew_plain()
  variables = {
    socket = settings.socket, proxy = settings.proxy, cluster = settings.cluster,
    address = settings.address,
  }
end

-- Closes the actors. Returns false when a call was still waiting.
local function end_case()
  local waited = false
  for _, each in pairs(actors) do
    waited = waited or each.waiting ~= nil
  end
  if waited then
    reset() -- so that every lock is free, and the waiters end
  end
  for _, each in pairs(actors) do
    if not each:close() then
      casefile.give_up("a call does not end")
    end
  end
  close_plain()
  actors = {}
  return not waited
end

-- Runs a case. Returns nil when it passed, or what went wrong.
local function run_case(case)
  local problem = #case.steps == 0 and case.path .. ": no steps" or nil
  begin_case(case)
  steps, at = case.steps, 0
  local passed, thrown = pcall(go_on)
  if not passed then
    local what = type(thrown) == "table" and thrown.problem or tostring(thrown)
    problem = ("%s:%d %s"):format(case.path, steps[at].line, what)
  end
  if not end_case() and not problem then
    problem = case.path .. ": the case ends while a call is waiting"
  end
  return problem
end

local function version(text)
  local major, minor = text:match("^(%d+)%.(%d+)")
  return tonumber(major) * 1000 + tonumber(minor)
end

-- Returns the first attribute that is not met.
local function excuse(case)
  for _, attribute in ipairs(case.attributes) do
    local name, value = attribute:match("^(%S+)%s*(.*)$")
    local met
    if name == "tcp" and value == "" then
      met = settings.address ~= nil
    elseif name == "redis" then
      met = version(settings.redis) >= version(value)
    elseif servers_of(attribute) then
      met = settings.servers ~= nil
    else
      casefile.give_up("unknown attribute: " .. attribute)
    end
    if not met then
      return attribute
    end
  end
end

-- Runs a case and prints how it went. Returns false when it failed.
local function report(case)
  local excused = excuse(case)
  local problem = not excused and run_case(case)
  if excused then
    print(("excused %s: %s"):format(case.title, excused))
  elseif problem then
    print(("failed %s: %s"):format(case.title, problem))
  else
    print("ok " .. case.title)
  end
  io.stdout:flush()
  return not problem
end

-- ---------------------------------------------------------------------- main

local function read_arguments()
  local i = 1
  while i <= #arg do
    local name = arg[i]:match("^%-%-(.+)$")
    if name == "titles" then
      settings.titles = true
    elseif name then
      i = i + 1
      settings[name] = arg[i]
    else
      files[#files + 1] = arg[i]
    end
    i = i + 1
  end
  sockets.socket, sockets.proxy = settings.socket, settings.proxy
end

local function main()
  local passed = true
  if not settings.titles then
    control = new_actor()
    assert(control:connect(settings.control, {timeout = CONTROL_TIMEOUT}))
  end
  for _, path in ipairs(files) do
    for _, case in ipairs(casefile.read(path)) do
      if settings.titles then
        print(case.title)
      else
        passed = report(case) and passed
      end
    end
  end
  return passed
end

read_arguments()
if settings.mode == "coroutine" then
  how = mode.coroutine()
else
  how = mode.blocking(pause)
end
os.exit(how.run(main), true)
