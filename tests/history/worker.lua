-- A process of the history check: takes the lock again and again, and writes down what it claims.
--
--     worker.lua URL FILE SEED
--
-- Runs until it is ended. The clock has hundredths of a second only: beginnings are rounded up and
-- ends down. See README.md.
local sneck = require "sneck"

local TTLS = {0.4, 1.0, 2.5}
local WAITS = {0, 0.3, 6, 20}
local HUNDREDTH = 10 -- milliseconds

local url, path, seed = ...
math.randomseed(tonumber(seed))
local client = assert(sneck.connect(url, {timeout = 1}))
local out = assert(io.open(path, "w"))
out:setvbuf("line")

local function floor_ms()
  local file = assert(io.open("/proc/uptime"))
  local uptime = file:read("n")
  file:close()
  return uptime * 1000
end

local function write(...)
  out:write(table.concat({...}, " "), "\n")
end

-- A section that needs no other module to wait: the processor is busy, the lock held.
local function work(seconds)
  local ends = os.clock() + seconds
  while os.clock() < ends do end
end

local function outcome(ok, code)
  return ok and "OK" or code
end

while true do
  local lock = client:lock("history", {ttl = TTLS[math.random(#TTLS)], fair = true})
  write("asked", floor_ms())
  local held, _, code = lock:acquire(WAITS[math.random(#WAITS)])
  if held then
    local before = floor_ms()
    local until_ms = before + lock:remaining() * 1000
    write("held", floor_ms() + HUNDREDTH, until_ms)
    work(math.random() * 0.02)
    write("releasing", floor_ms())
    local ok, _, why = lock:release()
    write("released", floor_ms(), outcome(ok, why))
  else
    write("missed", floor_ms(), code)
    work(0.01)
  end
end
