-- What every script of the fleet's asking shares (the prelude, state.lua first, stands in front of each). Redis is
-- the judge of time; answers and query texts are sealed bytes that pass through untouched.
--
-- All keys lie in the hash slot of KEYS[1] = farm:{verify}. U = :u:ID is one upstream (base URL, platform, key).
--   :cache :lru :exp :bytes   kept answers, by last use, by expiry; their sum
--   :procs                    zset    processes by the time at which they count as gone
--   :upstreams                zset    ids by last use
--   :grace                    string  there while nobody is to be taken for dead
--   :spent:EPOCH              set     queries charged to a run with a budget, by the first 16 of their key
--   :n:PROC                   channel answers for a process (records: 43 of key, 1 of code, 8 of length, bytes)
--   U                         hash    breaker, pauses, what was learned of it, counters; `trial`: after a pause one call
--                                     goes alone, '?' until it is taken, then its permit
--   U:w                       zset    waiting flights by the time (ms) from which they may be asked
--   U:p                       zset    permits "PROC|TOKEN" of calls under way by the end of their lease
--   U:a                       zset    the same of calls taken ahead: each begins with the permit of a call of its process that ends well
--   U:k:TOKEN                 list    when the call was taken, and its flights
--   U:s                       hash    each flight: "TOKEN|- tries waited-ms company deaths ttl PROC PROC … " (who asks it, who waits for it)
--   U:l                       hash    limits of those who ask it, "CALLS MS" (at once, between two), by the time of the last script
--   U:q                       hash    queries of flights that wait: without one, only those who wait for it can take it
--
--   flight:   (none) --join--> waiting --take--> taken --settle--> (none)      taken --again, or its process gone--> waiting
--             waiting --nobody waits any more, or upstream shut--> (none)
--   breaker:  closed --failures in a row--> open --cooldown, somebody asks--> half --probe--> closed | open
--
-- Codes of answers: v value (sealed), u unavailable, x unreadable, m misconfigured, o breaker open, h rate limited for
-- too long, b budget, f a new flight, w one under way, n not known, k there is work to take, r calls taken ahead are to
-- be given back.

local K = KEYS[1]
local O = cjson.decode(ARGV[1])
local U = K .. ':u:' .. O.up
local ME = O.me
local TIME = redis.call('TIME')
-- Reference cases bring a clock of their own.
local T = O.clock or TIME[1] * 1000 + math.floor(TIME[2] / 1000)

local mail, events, alive, S = {}, {}, {}, {}

local function int(v)
  return tonumber(v or '0') or 0
end

-- A time in ms that a platform had a say in, or that came over a wire: what is no number is none, and there is a most.
local function bounded(v, most)
  v = tonumber(v)
  if not v or v ~= v or v <= 0 or v == math.huge then return 0 end
  return math.min(math.floor(v), most)
end

-- 96 bits tell a run's queries apart, and a set of millions stays small.
local function charged_as(key)
  return string.sub(key, 1, 16)
end

-- One command with a long list, in parts that Lua's stack can hold.
local function bulk(command, key, list)
  for i = 1, #list, 1000 do redis.call(command, key, unpack(list, i, math.min(i + 999, #list))) end
end

-- Fields of a hash (command HMGET), scores (ZMSCORE) or membership (SMISMEMBER), in the order of `names`; false (or 0)
-- where there is none.
local function all_of(command, key, names)
  local out = {}
  for i = 1, #names, 1000 do
    for _, value in ipairs(redis.call(command, key, unpack(names, i, math.min(i + 999, #names)))) do out[#out + 1] = value end
  end
  return out
end

local function count(name, by)
  if by > 0 then redis.call('HINCRBY', U, 'c_' .. name, by) end
end

do
  local f = redis.call('HMGET', U, 'breaker', 'till', 'gen', 'failures', 'probe', 'why', 'pause', 'pause_why', 'refused', 'refused_why',
    'batch', 'batch_till', 'single_till', 'next', 'trial')
  S = { breaker = f[1] or 'closed', till = int(f[2]), gen = int(f[3]), failures = int(f[4]), probe = f[5] or '', why = f[6] or '',
    pause = int(f[7]), pause_why = f[8] or '', refused = int(f[9]), refused_why = f[10] or '',
    batch = O.batch, single = int(f[13]) > T, next = int(f[14]), trial = f[15] or '' }
  -- Whatever stands there: nobody is kept waiting longer than a pause may last.
  S.pause = math.min(S.pause, T + O.longest)
  if f[11] and int(f[12]) > T then S.batch = math.min(S.batch, math.max(1, int(f[11]))) end
end

local function turn(breaker, why)
  S.breaker, S.gen, S.failures = breaker, S.gen + 1, 0
  S.till = breaker == 'open' and T + O.cooldown or 0
  if why then S.why = why end
  redis.call('HSET', U, 'breaker', breaker, 'till', S.till, 'gen', S.gen, 'failures', 0, 'since', T, 'why', S.why)
  if breaker == 'open' then count('opened', 1) end
  events[#events + 1] = { breaker, S.why }
end

-- Why nobody is to ask now: code and detail, or nothing.
local function shut()
  if S.refused > T then return 'm', S.refused_why end
  if S.breaker == 'open' and S.till > T then return 'o', S.why end
  if S.pause - T > O.patience then return 'h', S.pause_why end
end
