-- What every script of the fleet's asking shares (script.ts puts it in front of each). Redis is the judge of time;
-- answers and query texts are sealed bytes that pass through untouched.
--
-- All keys lie in the hash slot of KEYS[1] = farm:{verify}. U = :u:ID is one upstream (base URL, platform, key).
--   :cache :lru :exp :bytes   kept answers, by last use, by expiry; their sum
--   :procs                    zset    processes by the time at which they count as gone
--   :upstreams                zset    ids by last use
--   :grace                    string  there while nobody is to be taken for dead
--   :spent:EPOCH              string  queries asked for a run with a budget
--   :n:PROC                   channel answers for a process (records: 43 of key, 1 of code, 8 of length, bytes)
--   U                         hash    breaker, pauses, what was learned of it, counters
--   U:w                       zset    waiting flights by the time (ms) from which they may be asked
--   U:p                       zset    permits "PROC|TOKEN" of calls under way by the end of their lease
--   U:k:TOKEN                 list    when the call was taken, and its flights
--   U:f:KEY                   hash    a flight: q query, ps processes that wait, s 'w' | 't', t token, n tries, wt waited ms, cap, ttl
--
--   flight:   (none) --join--> w --take--> t --settle--> (none)         t --again, or its process gone--> w
--             w --nobody waits any more, or upstream shut--> (none)
--   breaker:  closed --failures in a row--> open --cooldown, somebody asks--> half --probe--> closed | open
--
-- Codes of answers: v value (sealed), u unavailable, x unreadable, m misconfigured, o breaker open, h rate limited for
-- too long, b budget, w waiting, n not known, k there is work to take.

local K = KEYS[1]
local O = cjson.decode(ARGV[1])
local U = K .. ':u:' .. O.up
local ME = O.me
local TIME = redis.call('TIME')
local T = TIME[1] * 1000 + math.floor(TIME[2] / 1000)

local mail, events, alive, S = {}, {}, {}, {}

local function int(v)
  return tonumber(v or '0') or 0
end

local function flight(key)
  return U .. ':f:' .. key
end

local function count(name, by)
  if by > 0 then redis.call('HINCRBY', U, 'c_' .. name, by) end
end

do
  local f = redis.call('HMGET', U, 'breaker', 'till', 'gen', 'failures', 'probe', 'why', 'pause', 'pause_why', 'refused', 'refused_why',
    'batch', 'batch_till', 'single_till', 'next')
  S = { breaker = f[1] or 'closed', till = int(f[2]), gen = int(f[3]), failures = int(f[4]), probe = f[5] or '', why = f[6] or '',
    pause = int(f[7]), pause_why = f[8] or '', refused = int(f[9]), refused_why = f[10] or '',
    batch = O.batch, single = int(f[13]) > T, next = int(f[14]) }
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

-- Processes

local function is_alive(proc)
  if alive[proc] == nil then
    local till = redis.call('ZSCORE', K .. ':procs', proc)
    alive[proc] = till and (tonumber(till) > T or redis.call('EXISTS', K .. ':grace') == 1) or false
  end
  return alive[proc]
end

local function any_alive(ps)
  for proc in string.gmatch(ps or '', '%S+') do
    if is_alive(proc) then return true end
  end
  return false
end

local function here()
  local till = redis.call('ZSCORE', K .. ':procs', ME)
  -- We are late ourselves (Redis was away, or this machine slept): the others get time to come back too.
  if till and tonumber(till) <= T then redis.call('SET', K .. ':grace', 1, 'PX', O.grace) end
  redis.call('ZADD', K .. ':procs', T + O.lease, ME)
  alive[ME] = true
end

local function post(ps, key, code, value, except)
  local record = key .. code .. string.format('%08d', #value) .. value
  for proc in string.gmatch(ps or '', '%S+') do
    if proc ~= except then
      local list = mail[proc]
      if not list then list = {} mail[proc] = list end
      list[#list + 1] = record
    end
  end
end

local function send()
  for proc, list in pairs(mail) do redis.call('PUBLISH', K .. ':n:' .. proc, table.concat(list)) end
end

-- The cache

local OVERHEAD = 450

local function forget(key)
  local size = redis.call('HSTRLEN', K .. ':cache', key)
  redis.call('ZREM', K .. ':exp', key)
  redis.call('ZREM', K .. ':lru', key)
  if redis.call('HDEL', K .. ':cache', key) == 1 then redis.call('DECRBY', K .. ':bytes', size + OVERHEAD) end
end

local function recall(key)
  local value = redis.call('HGET', K .. ':cache', key)
  if not value or int(redis.call('ZSCORE', K .. ':exp', key)) <= T then return nil end
  redis.call('ZADD', K .. ':lru', T, key)
  return value
end

local function evict(most)
  for _, key in ipairs(redis.call('ZRANGE', K .. ':lru', 0, most - 1)) do forget(key) end
end

local function purge()
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', K .. ':exp', '-inf', T, 'LIMIT', 0, 50)) do forget(key) end
  if O.full then evict(200) end
end

local kept = { bytes = 0, ttl = 0, lru = {}, exp = {} }

local function keep(key, value, ttl)
  local bytes = #value + OVERHEAD
  if O.full or bytes > O.room / 16 then return end
  if redis.call('HSTRLEN', K .. ':cache', key) > 0 then forget(key) end
  redis.call('HSET', K .. ':cache', key, value)
  local n = #kept.lru
  kept.lru[n + 1], kept.lru[n + 2] = T, key
  kept.exp[n + 1], kept.exp[n + 2] = T + ttl, key
  kept.bytes = kept.bytes + bytes
  kept.ttl = math.max(kept.ttl, ttl)
end

-- What this script kept is entered in the books, and the least recently used goes for it.
local function enter()
  if kept.bytes == 0 then return end
  redis.call('ZADD', K .. ':lru', unpack(kept.lru))
  redis.call('ZADD', K .. ':exp', unpack(kept.exp))
  local bytes = redis.call('INCRBY', K .. ':bytes', kept.bytes)
  while bytes > O.room and redis.call('ZCARD', K .. ':lru') > 0 do
    evict(1)
    bytes = int(redis.call('GET', K .. ':bytes'))
  end
  -- When nobody writes any more, the whole goes with its last entry.
  for _, name in ipairs({ ':cache', ':lru', ':exp', ':bytes' }) do
    redis.call('PEXPIRE', K .. name, kept.ttl, 'NX')
    redis.call('PEXPIRE', K .. name, kept.ttl, 'GT')
  end
end

-- Flights

local function drop(key)
  redis.call('DEL', flight(key))
  redis.call('ZREM', U .. ':w', key)
end

local function wait_again(key, delay)
  redis.call('HSET', flight(key), 's', 'w', 't', '')
  redis.call('ZADD', U .. ':w', T + delay, key)
end

-- Answers everybody who waits for something that is not yet asked.
local function drain(code, detail)
  for _, key in ipairs(redis.call('ZRANGE', U .. ':w', 0, -1)) do
    post(redis.call('HGET', flight(key), 'ps'), key, code, detail)
    redis.call('DEL', flight(key))
  end
  redis.call('DEL', U .. ':w')
end

-- The flights of a call whose process is gone wait again; a query that was lost so often is given up.
local function release(token)
  for _, key in ipairs(redis.call('LRANGE', U .. ':k:' .. token, 1, -1)) do
    local f = redis.call('HMGET', flight(key), 't', 'ps', 'n')
    if f[1] == token then
      if not any_alive(f[2]) then
        drop(key)
      elseif int(f[3]) + 1 >= O.tries then
        post(f[2], key, 'u', 'the processes that asked died')
        drop(key)
      else
        redis.call('HSET', flight(key), 'n', int(f[3]) + 1, 'cap', 1)
        wait_again(key, 0)
      end
    end
  end
  redis.call('DEL', U .. ':k:' .. token)
end

-- Calls to make now, at most O.calls, and in how many ms to look again (-1: somebody will say).
local function take()
  local calls, wake = {}, -1
  if O.calls == 0 then return calls, wake end
  redis.call('ZREMRANGEBYSCORE', U .. ':p', '-inf', T)
  local items = 0
  for i = 1, O.calls do
    local first = redis.call('ZRANGE', U .. ':w', 0, 0, 'WITHSCORES')
    if #first == 0 then break end
    local head = tonumber(first[2])
    if head > T then wake = head - T break end
    if redis.call('ZCARD', U .. ':p') >= O.concurrency then break end
    if S.pause > T then wake = S.pause - T break end
    if S.breaker == 'open' and S.till > T then wake = S.till - T break end
    if S.breaker == 'half' and redis.call('ZSCORE', U .. ':p', S.probe) then break end
    if O.spacing > 0 and S.next > T then wake = math.ceil(S.next - T) break end
    local probe = S.breaker ~= 'closed'
    local size = (probe or S.single) and 1 or S.batch
    if size > 1 and not O.now and T - head < O.window and redis.call('ZCOUNT', U .. ':w', '-inf', T) < size then
      wake = O.window - (T - head)
      break
    end
    local chosen, items_of, bytes, suspects = {}, {}, 0, false
    for _, key in ipairs(redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, size)) do
      local f = redis.call('HMGET', flight(key), 'q', 'ps', 'n', 'wt', 'cap')
      if not f[1] or not any_alive(f[2]) then
        drop(key)
      else
        local cap = int(f[5])
        if #chosen == 0 then suspects = cap > 0 end
        -- What may have spoiled a batch travels with its like only.
        local room = cap > 0 and math.min(size, cap) or size
        if (cap > 0) == suspects and #chosen < room and (#chosen == 0 or bytes + #f[1] <= O.bytes) then
          size = room
          bytes = bytes + #f[1]
          chosen[#chosen + 1] = key
          local has = string.find(f[2], ' ' .. ME .. ' ', 1, true)
          items_of[#items_of + 1] = { key, has and '' or f[1], tostring(int(f[3])), tostring(int(f[4])) }
        end
      end
    end
    if #chosen == 0 then
      wake = 0
    else
      local token = O.token .. '.' .. i
      local permit = ME .. '|' .. token
      redis.call('ZADD', U .. ':p', T + O.permit, permit)
      redis.call('RPUSH', U .. ':k:' .. token, T, unpack(chosen))
      redis.call('PEXPIRE', U .. ':k:' .. token, O.permit * 2)
      redis.call('ZREM', U .. ':w', unpack(chosen))
      for _, key in ipairs(chosen) do redis.call('HSET', flight(key), 's', 't', 't', token) end
      if probe then
        if S.breaker == 'open' then turn('half') end
        S.probe = permit
        redis.call('HSET', U, 'probe', permit)
      end
      if O.spacing > 0 then
        S.next = math.max(T, S.next) + O.spacing
        redis.call('HSET', U, 'next', string.format('%.3f', S.next))
      end
      items = items + #chosen
      calls[#calls + 1] = { token, tostring(S.gen), S.single and '1' or '0', items_of }
    end
  end
  if #calls == O.calls then wake = 0 end
  count('calls', #calls)
  count('items', items)
  return calls, wake
end

-- What every script answers: wake ms, events, calls; then its own.
local function reply(own)
  local calls, wake = take()
  if O.calls == 0 and redis.call('ZCARD', U .. ':p') < O.concurrency then
    local first = redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, 1)
    if first[1] then post(redis.call('HGET', flight(first[1]), 'ps'), first[1], 'k', '', ME) end
  end
  send()
  return { tostring(wake), events, calls, own or {} }
end
