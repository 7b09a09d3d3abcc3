-- The verbs of a case, done with a Lua client of the actor's own.
--
-- An actor has at most one call under way, and touches no lock object of it before it has ended.
-- One that is left waiting is an op: whenever a step is given time, all of these are stepped, those
-- of the actors whose turn it is not, too.
local arguments = require "arguments"
local casefile = require "casefile"
local outcome = require "outcome"
local sneck = require "sneck"
local try_lock = require "try_lock"

local limit, milliseconds, seconds = arguments.limit, arguments.milliseconds, arguments.seconds
local value_of, whole = arguments.value_of, arguments.whole

local LEAVE_MS = 80 -- how long a call that should wait is watched
local LIMIT_MS = 30000 -- what a call gets to end
local STEP_MS = 5 -- between two steps

local AGAIN = LIMIT_MS / STEP_MS -- times to look at who waits

local actor = {}
actor.__index = actor

--- What a verb gives, in place of an outcome, that ends the function of a transaction.
actor.ENDS = {}

--- The verbs of transactions, which `until` does not repeat, and `...`.
actor.ONCE = {
  begin = true, read = true, queue = true, watch = true, conflicts = true, commit = true,
  abort = true, raise = true, ["..."] = true,
}

local under_way = {} -- the ops of calls that were left waiting, as keys
local innermost -- the session of the transaction that was begun last

--- Makes an actor. `sockets` has paths by name, and in `servers` the addresses of a quorum where
-- its client is to be of one. `how` is one of mode.lua. `judge` takes the
-- outcome of the step under way, and `go_on` does the steps behind it until a verb gives ENDS.
function actor.new(sockets, how, judge, go_on)
  return setmetatable({
    sockets = sockets, how = how, judge = judge, go_on = go_on, locks = {}, rlocks = {},
    owners = {},
  }, actor)
end

-- --------------------------------------------------------------------- calls

-- Calls the library. Misuse, which throws, and a failure become an outcome.
local function try(call, ...)
  assert(call, "no such function")
  local result = table.pack(pcall(call, ...))
  if not result[1] then
    return nil, outcome.fail("INVALID")
  end
  if result[2] == nil and result[4] then
    return nil, outcome.fail(result[4], result[5])
  end
  return result[2]
end

-- Tells a call that gives nothing but success.
local function done(call, ...)
  local _, failure = try(call, ...)
  return failure or outcome.ok()
end

--- Makes the client, of one server or of a table of them. Returns true, or nil and the outcome.
function actor:connect(address, options)
  local failure
  local make = type(address) == "table" and self.how.quorum or self.how.connect
  self.client, failure = try(make, address, options)
  return self.client and true, failure
end

function actor:made()
  if not self.client then
    assert(self:connect(self.sockets.servers or "unix://" .. self.sockets.socket))
  end
  return self.client
end

function actor:lock(name)
  local failure
  if not self.locks[name] then
    self.locks[name], failure = try(self:made().lock, self.client, name)
  end
  return self.locks[name], failure
end

-- The actor's lock object, or one adopted for this step only.
function actor:owner(given)
  local token = given.options.token
  if not token then
    return self:lock(given[1])
  end
  return try(self:made().adopt, self.client, given[1], token)
end

-- ---------------------------------------------------------- re-entrant locks

-- Calls as the owner that the options name, and tells the outcome; throws what the call does.
function actor:as_owner(options, call, ...)
  local name = tonumber(options.owner) or casefile.refuse("an owner is a number")
  self.owners[name] = self.owners[name] or self.how.owner()
  local well, result = self.owners[name].call(call, ...)
  if not well then
    error(result, 0)
  end
  return result
end

-- ------------------------------------------------------------ calls that wait

local function token_of(lock, failure)
  return failure or outcome.ok(lock:token())
end

local function step_all()
  for op in pairs(under_way) do
    op:step()
  end
end

--- Lets time pass, in which the calls that were left waiting go on.
function actor.pass(milliseconds_left, sleep)
  for _ = 1, milliseconds_left, STEP_MS do
    step_all()
    sleep(STEP_MS)
  end
end

-- Gives the waiting op a time; nil when it has not ended.
function actor:pump(limit_ms)
  local waiting = self.waiting
  for _ = 0, limit_ms, STEP_MS do
    step_all()
    if waiting.op:step() then
      self.waiting, under_way[waiting.op] = nil, nil
      local _, failure = try(waiting.op.result, waiting.op)
      return waiting.lock and token_of(waiting.lock, failure) or failure or outcome.ok()
    end
    self.how.sleep(STEP_MS)
  end
end

-- Leaves a call of an object waiting; one without a lock gives nothing.
function actor:start(lock, object, call, ...)
  local op, failure = try(self.how.start, object, call, ...)
  if not op then
    return failure
  end
  self.waiting, under_way[op] = {lock = lock, op = op}, true
  return self:resume(true)
end

--- Gives the call left waiting its time to end.
function actor:resume(leave)
  if not self.waiting then
    casefile.refuse("the actor has no call that waits")
  end
  return self:pump(leave and LEAVE_MS or LIMIT_MS) or outcome.of("...")
end

-- --------------------------------------------------------------------- verbs

local verbs = {}

function verbs.connect(self, words)
  local given = arguments.read(words, 0, "url", "through", "timeout", "connect_timeout", "prefix",
    "label", "client_name")
  local options, through = given.options, given.options.through
  if self.client then
    casefile.refuse("connect is the first step of an actor")
  elseif through and (through ~= "proxy" or options.url) then
    casefile.refuse("through=proxy stands alone")
  elseif self.sockets.servers and (options.url or through) then
    casefile.refuse("where there are several servers, a client is a quorum of all of them")
  end
  local default = "unix://" .. self.sockets[through and "proxy" or "socket"]
  local made, failure = self:connect(options.url or self.sockets.servers or default, {
    timeout = seconds(options.timeout),
    connect_timeout = seconds(options.connect_timeout),
    prefix = options.prefix,
    label = options.label,
    client_name = options.client_name,
  })
  return made and outcome.ok() or failure
end

-- The actor's object for the name, of the kind that has its objects in `made`: a new one where
-- options are given, or there is none.
function actor:use(made, make, name, options)
  local read, failure = arguments.lock_options(options), nil
  local lock = not read and made[name]
  if not lock then
    lock, failure = try(make, self:made(), name, read)
    made[name] = lock or made[name]
  end
  return lock, failure
end

-- Of timestamp locks, and whether they write milliseconds.
local KINDS = {timestamp = false, timestamp_ms = true}

-- Makes a timestamp lock of a client, with the options of other locks.
local function legacy_lock(client, name, options)
  options.milliseconds = KINDS[options.kind]
  options.kind, options.timeout, options.ttl = nil, options.ttl, nil
  return client:legacy_lock(name, options)
end

function verbs.acquire(self, words, leave)
  local given = arguments.read(words, 1, "ttl", "label", "fair", "poll", "wait", "renew", "fence",
    "max_hold", "owner", "kind")
  local name, options = given[1], given.options
  local client = self:made()
  local made, make = self.locks, client.lock
  if options.owner then
    made, make = self.rlocks, client.rlock
  elseif KINDS[options.kind] ~= nil then
    make = legacy_lock
  elseif options.kind then
    casefile.refuse("a kind is timestamp, timestamp_ms, or not there")
  end
  local lock, failure = self:use(made, make, name, options)
  if not lock then
    return failure
  end
  -- a lock that is made without `wait` waits without a limit
  local wait = options.wait ~= "forever" and seconds(options.wait or "0") or nil
  local function acquire()
    local _, missed = try(lock.acquire, lock, wait)
    return token_of(lock, missed)
  end
  if options.owner and leave then
    casefile.refuse("an owner's acquire is not left waiting")
  elseif options.owner then
    return self:as_owner(options, acquire)
  end
  return leave and self:start(lock, lock, "acquire", wait) or acquire()
end

-- Calls a method of the actor's re-entrant lock as an owner.
function actor:ask_owner(given, tell)
  local lock, failure = self:use(self.rlocks, self:made().rlock, given[1], {})
  return failure or self:as_owner(given.options, tell, lock)
end

function verbs.release(self, words)
  local given = arguments.read(words, 1, "token", "owner")
  if given.options.owner then
    return self:ask_owner(given, function(rlock) return done(rlock.release, rlock) end)
  end
  local lock, failure = self:owner(given)
  return failure or done(lock.release, lock)
end

function verbs.extend(self, words)
  local given = arguments.read(words, 1, "ttl", "token")
  local lock, failure = self:owner(given)
  return failure or done(lock.extend, lock, seconds(given.options.ttl))
end

function verbs.adopt(self, words)
  local given = arguments.read(words, 2, "ttl")
  local lock, failure = try(self:made().adopt, self.client, given[1], given[2],
    {ttl = seconds(given.options.ttl)})
  self.locks[given[1]] = lock or self.locks[given[1]]
  return failure or outcome.ok()
end

function verbs.remaining(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  return failure or outcome.ok(milliseconds(lock:remaining()))
end

function verbs.owned(self, words)
  local given = arguments.read(words, 1, "owner")
  if given.options.owner then
    return self:ask_owner(given, function(rlock) return outcome.yes(rlock:owned()) end)
  end
  local lock, failure = self:lock(given[1])
  return failure or outcome.yes(lock:owned())
end

function verbs.lease(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  return failure or outcome.ok(lock:lease())
end

function verbs.lost(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  return failure or outcome.yes(lock:lost())
end

function verbs.fence(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  if failure then
    return failure
  end
  return lock:fence() and outcome.ok(lock:fence()) or outcome.of("nil")
end

local STATES = {on = true, off = false}

function verbs.keep_alive(self, words)
  local given = arguments.read(words, 2)
  local on = STATES[given[2]]
  if on == nil then
    casefile.refuse("keep_alive is on, or off")
  end
  local lock, failure = self:lock(given[1])
  return failure or done(lock.keep_alive, lock, on)
end

function verbs.clone(self, words)
  local given = arguments.read(words, 2)
  local lock, failure = self:lock(given[1])
  if failure then
    return failure
  elseif self.locks[given[2]] then
    casefile.refuse("the name of the clone is taken")
  end
  local clone, refused = try(lock.clone, lock)
  self.locks[given[2]] = clone
  return refused or outcome.ok()
end

function verbs.token(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  if failure then
    return failure
  end
  return lock:token() and outcome.ok(lock:token()) or outcome.of("nil")
end

function verbs.locked(self, words)
  local lock, failure = self:lock(arguments.read(words, 1)[1])
  if failure then
    return failure
  end
  local locked, unanswered = try(lock.locked, lock)
  return unanswered or outcome.yes(locked)
end

local FIELDS = {
  token = function(holder) return outcome.ok(holder.token) end,
  host = function(holder) return outcome.ok(holder.host) end,
  pid = function(holder) return outcome.ok(holder.pid) end,
  label = function(holder) return outcome.ok(holder.label) end,
  foreign = function(holder) return outcome.yes(holder.foreign) end,
  ttl = function(holder) return outcome.ok(holder.ttl and milliseconds(holder.ttl) or "never") end,
}

function verbs.holder(self, words)
  local given = arguments.read(words, 2)
  local field = FIELDS[given[2]] or casefile.refuse("unknown field")
  local lock, failure = self:lock(given[1])
  if failure then
    return failure
  end
  local holder, unanswered = try(lock.holder, lock)
  return unanswered or (holder and field(holder)) or outcome.of("nil")
end

function verbs.waiters(self, words)
  local given = arguments.read(words, #words == 2 and 2 or 1)
  local name, count = given[1], tonumber(given[2])
  local client = self:made()
  local found, failure = try(client.waiters, client, name)
  for _ = 1, AGAIN do
    if not found or not count or #found == count then
      break
    end
    step_all()
    self.how.sleep(STEP_MS)
    found, failure = try(client.waiters, client, name)
  end
  return failure or outcome.labels(found)
end

function verbs.force_release(self, words)
  local client, name = self:made(), arguments.read(words, 1)[1]
  local owner = self.locks[name] or client
  local held, failure = try(owner.force_release, owner, owner == client and name or nil)
  return failure or outcome.yes(held)
end

try_lock.add(verbs, done)

function verbs.stats(self, words)
  local name = arguments.read(words, 1)[1]
  local value = self:made():stats()[name] or casefile.refuse("unknown field")
  return outcome.ok(name == "wait" and milliseconds(value) or value)
end

function verbs.execute(self, words)
  local client = self:made()
  local reply, failure = try(client.execute, client, whole(words))
  return failure or outcome.reply(reply)
end

-- ------------------------------------------------------------ compare-and-set

-- What the function of an update makes of the old value.
local CHANGES = {
  add = function(old, number) return tonumber(old or 0) + tonumber(number) end,
  append = function(old, text) return (old or "") .. text end,
  delete = function() return nil end,
  keep = function() return sneck.KEEP end,
}

-- The options of a transaction; or nil and an outcome.
function actor:tx_options(options)
  local guard, failure
  if options.guard then
    guard, failure = self:lock(options.guard)
  end
  return not failure and {
    ttl = seconds(options.ttl),
    attempts = options.attempts and math.tointeger(tonumber(options.attempts)),
    wait = limit(options.wait),
    guard = guard,
  } or nil, failure
end

-- Calls the library and tells what it gave as `tell` does; keeps the details of a failure.
function actor:tell(tell, call, ...)
  local result = table.pack(pcall(call, ...))
  if not result[1] and type(result[2]) ~= "string" then
    error(result[2], 0) -- thrown by a step
  elseif not result[1] then
    return outcome.fail("INVALID")
  elseif result[2] == nil and result[4] then
    self.details = result[6]
    return outcome.fail(result[4], result[5])
  end
  return tell(result[2])
end

function verbs.update(self, words)
  local given = arguments.read(words, 1, "add", "append", "delete", "keep", "ttl", "attempts",
    "wait", "guard")
  local change
  for name in pairs(CHANGES) do
    if given.options[name] and change then
      casefile.refuse("more than one change")
    end
    change = given.options[name] and name or change
  end
  if not change then
    casefile.refuse("an update needs a change")
  end
  local options, failure = self:tx_options(given.options)
  local client, argument = self:made(), given.options[change]
  return failure or self:tell(outcome.reply, client.update, client, given[1], function(old)
    return CHANGES[change](old, argument)
  end, options)
end

function verbs.compare_and_set(self, words)
  local given = arguments.read(words, 3, "ttl")
  local client = self:made()
  return self:tell(outcome.yes, client.compare_and_set, client, given[1], value_of(given.words[2]),
    value_of(given.words[3]), {ttl = seconds(given.options.ttl)})
end

function verbs.compare_and_delete(self, words)
  local given = arguments.read(words, 2)
  local client = self:made()
  return self:tell(outcome.yes, client.compare_and_delete, client, given[1], given[2])
end

local DETAILS = {
  attempts = function(details) return outcome.ok(details.attempts) end,
  waited = function(details) return outcome.ok(milliseconds(details.waited)) end,
  keys = function(details)
    return outcome.reply({n = #details.keys, table.unpack(details.keys)})
  end,
  index = function(details) return outcome.ok(details.index - 1) end,
  results = function(details) return outcome.reply(details.results) end,
}

function verbs.failure(self, words)
  local name = arguments.read(words, 1)[1]
  if not DETAILS[name] or not self.details or self.details[name] == nil then
    casefile.refuse("unknown field")
  end
  return DETAILS[name](self.details)
end

-- --------------------------------------------------------------- transactions

-- Lua has no threads. So the function of a transaction does itself the steps that follow, those of
-- other actors, too, until one ends it; and the transaction that was begun last ends first.

-- What the function does at its end is `session.ending`; nil: there are no more steps.
local function run_function(self, session, tx)
  session.tx, session.ending = tx, nil
  self.judge(session.run_before and outcome.of("again") or outcome.ok())
  session.run_before = true
  self.go_on()
  if not session.ending then
    casefile.refuse("the case ends while a transaction is open")
  end
  session.ending(tx)
end

function verbs.begin(self, words)
  local given = arguments.read(words, nil, "attempts", "wait", "guard")
  if self.session then
    casefile.refuse("the actor is in a transaction")
  end
  local options, failure = self:tx_options(given.options)
  if failure then
    return failure
  end
  local client, session = self:made(), {around = innermost, mine = {}}
  self.session, innermost = session, session
  local ended, result = pcall(self.tell, self, outcome.reply, client.transaction, client,
    table.move(given, 1, #given, 1, {}), function(tx) run_function(self, session, tx) end, options)
  self.session, innermost = nil, session.around
  if not ended and result ~= session.mine then
    error(result, 0)
  end
  return ended and result or outcome.ok()
end

function actor:tx()
  return self.session and self.session.tx or casefile.refuse("the actor is in no transaction")
end

-- What fails here ends the function.
function verbs.read(self, words)
  return outcome.reply(self:tx():execute(whole(words)))
end

function verbs.queue(self, words)
  self:tx():queue(whole(words))
  return outcome.ok()
end

function verbs.watch(self, words)
  self:tx():watch(whole(words))
  return outcome.ok()
end

function verbs.conflicts(self, words)
  arguments.read(words, 0)
  return outcome.ok(self:tx():conflicts())
end

local function end_by(ending)
  return function(self, words)
    arguments.read(words, 0)
    self:tx()
    if self.session ~= innermost then
      casefile.refuse("the transaction that was begun last ends first")
    end
    self.session.ending = ending
    return actor.ENDS
  end
end

verbs.commit = end_by(function() end)
verbs.abort = end_by(function(tx) tx:abort() end)
verbs.raise = end_by(function() error(innermost.mine, 0) end)

-- -------------------------------------------------------------------- public

--- Does a verb. `leave`: it is expected to wait, so give it a moment only.
function actor:run(verb, words, leave)
  if self.waiting then
    casefile.refuse("the actor is still waiting")
  elseif not verbs[verb] then
    casefile.refuse("unknown verb")
  elseif leave and verb ~= "acquire" and verb ~= "try_lock" then
    casefile.refuse("only an acquire or a try may be left waiting")
  end
  return verbs[verb](self, words, leave)
end

--- Closes all. Returns false when a call is still under way and does not end.
function actor:close()
  if self.waiting and not self:pump(LIMIT_MS) then
    return false
  end
  for _, owner in pairs(self.owners) do
    owner.close()
  end
  if self.client then
    self.client:close()
  end
  return true
end

return actor
