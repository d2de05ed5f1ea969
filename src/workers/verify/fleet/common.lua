-- What every script of the fleet's asking shares (script.ts puts it in front of each). Redis is the judge of time;
-- answers and query texts are sealed bytes that pass through untouched.
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
--   U:k:TOKEN                 list    when the call was taken, and its flights
--   U:s                       hash    each flight: "TOKEN|- tries waited-ms company deaths ttl PROC PROC … " (who asks it, who waits for it)
--   U:q                       hash    queries of flights that wait: without one, only those who wait for it can take it
--
--   flight:   (none) --join--> waiting --take--> taken --settle--> (none)      taken --again, or its process gone--> waiting
--             waiting --nobody waits any more, or upstream shut--> (none)
--   breaker:  closed --failures in a row--> open --cooldown, somebody asks--> half --probe--> closed | open
--
-- Codes of answers: v value (sealed), u unavailable, x unreadable, m misconfigured, o breaker open, h rate limited for
-- too long, b budget, f a new flight, w one under way, n not known, k there is work to take.

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

-- The kept answers of keys, false where there is none that may still be used.
local function recall(keys)
  local values, used, exp = all_of('HMGET', K .. ':cache', keys), {}, nil
  for i, value in ipairs(values) do
    if value then
      exp = exp or all_of('ZMSCORE', K .. ':exp', keys)
      if int(exp[i]) > T then
        used[#used + 1] = T
        used[#used + 1] = keys[i]
      else
        values[i] = false
      end
    end
  end
  bulk('ZADD', K .. ':lru', used)
  return values
end

local function evict(most)
  for _, key in ipairs(redis.call('ZRANGE', K .. ':lru', 0, most - 1)) do forget(key) end
end

local function purge()
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', K .. ':exp', '-inf', T, 'LIMIT', 0, 50)) do forget(key) end
  if O.full then evict(200) end
end

-- Keeps pairs of key and value, each for its time, and lets the least recently used go for them.
local function keep(entries)
  local keys, fields, lru, exp, sum, longest = {}, {}, {}, {}, 0, 0
  for _, entry in ipairs(entries) do
    local key, value, ttl = entry[1], entry[2], entry[3]
    local bytes = #value + OVERHEAD
    if not O.full and bytes <= O.room / 16 then
      local n = #fields
      keys[#keys + 1] = key
      fields[n + 1], fields[n + 2] = key, value
      lru[n + 1], lru[n + 2] = T, key
      exp[n + 1], exp[n + 2] = T + ttl, key
      sum, longest = sum + bytes, math.max(longest, ttl)
    end
  end
  if #keys == 0 then return end
  for i, known in ipairs(all_of('ZMSCORE', K .. ':lru', keys)) do
    if known then forget(keys[i]) end
  end
  bulk('HSET', K .. ':cache', fields)
  bulk('ZADD', K .. ':lru', lru)
  bulk('ZADD', K .. ':exp', exp)
  local bytes = redis.call('INCRBY', K .. ':bytes', sum)
  while bytes > O.room and redis.call('ZCARD', K .. ':lru') > 0 do
    evict(1)
    bytes = int(redis.call('GET', K .. ':bytes'))
  end
  -- When nobody writes any more, the whole goes with its last entry.
  for _, name in ipairs({ ':cache', ':lru', ':exp', ':bytes' }) do
    redis.call('PEXPIRE', K .. name, longest, 'NX')
    redis.call('PEXPIRE', K .. name, longest, 'GT')
  end
end

-- Flights

local WAITING = '-'
local DAY = 86400000
-- As many as go together of what may have spoiled a call (settlement.ts has the same).
local PART = 7

-- `ps` has a space on both sides of each process that waits.
local function read_state(text)
  local token, n, wt, cap, deaths, ttl, ps = string.match(text or '', '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+)( .*)$')
  return { token = token, n = int(n), wt = int(wt), cap = int(cap), deaths = int(deaths), ttl = int(ttl), ps = ps or '' }
end

local function write_state(token, s)
  return string.format('%s %d %d %d %d %d%s', token, s.n, s.wt, s.cap, s.deaths, s.ttl, s.ps)
end

local function states(keys)
  return all_of('HMGET', U .. ':s', keys)
end

local function has(ps, proc)
  return string.find(ps, ' ' .. proc .. ' ', 1, true)
end

local function drop(keys)
  for _, name in ipairs({ ':q', ':s' }) do bulk('HDEL', U .. name, keys) end
end

-- `again` has pairs of state and key, `due` of time and key.
local function wait_again(again, due, key, s, delay)
  again[#again + 1] = key
  again[#again + 1] = write_state(WAITING, s)
  due[#due + 1] = T + delay
  due[#due + 1] = key
end

local function put_waiting(again, due)
  bulk('HSET', U .. ':s', again)
  bulk('ZADD', U .. ':w', due)
end

-- Answers everybody who waits for something that is not yet asked.
local function drain(code, detail)
  local keys = redis.call('ZRANGE', U .. ':w', 0, -1)
  for i, text in ipairs(states(keys)) do post(read_state(text).ps, keys[i], code, detail) end
  drop(keys)
  redis.call('DEL', U .. ':w')
end

-- The flights of a call whose process is gone wait again, at no try: machines die of other things than queries. In case
-- one of them is the reason they go in parts, after a second death one by one, and one that died so alone several
-- times is given up: it must not take the fleet with it.
local function release(token)
  local keys = redis.call('LRANGE', U .. ':k:' .. token, 1, -1)
  local of, again, due, gone = states(keys), {}, {}, {}
  for i, key in ipairs(keys) do
    local s = read_state(of[i])
    if s.token == token then
      s.deaths = s.deaths + 1
      s.cap = s.deaths > 1 and 1 or s.cap > 0 and math.min(s.cap, PART) or PART
      if any_alive(s.ps) and s.deaths < O.deaths then
        wait_again(again, due, key, s, 0)
      else
        post(s.ps, key, 'u', 'the processes that asked died')
        gone[#gone + 1] = key
      end
    end
  end
  put_waiting(again, due)
  drop(gone)
  redis.call('DEL', U .. ':k:' .. token)
end

-- May a call be made now? How many queries it may have, and whether it is the probe; or in how many ms to ask again
-- (-1: somebody will say).
local function gate()
  if redis.call('ZCARD', U .. ':p') >= O.concurrency then return nil, -1 end
  if S.pause > T then return nil, S.pause - T end
  if S.breaker == 'open' and S.till > T then return nil, S.till - T end
  if S.breaker == 'half' and redis.call('ZSCORE', U .. ':p', S.probe) then return nil, -1 end
  if S.trial ~= '' and S.trial ~= '?' and redis.call('ZSCORE', U .. ':p', S.trial) then return nil, -1 end
  if O.spacing > 0 and S.next > T then return nil, math.ceil(S.next - T) end
  local probe = S.breaker ~= 'closed'
  return (probe or S.single) and 1 or S.batch, probe
end

-- A call with these flights (key, state, query or '' where this process has it).
local function grant(number, flights, probe)
  local token = O.token .. '.' .. number
  local permit = ME .. '|' .. token
  local keys, status, items, queries, foreign = {}, {}, {}, {}, false
  for i, one in ipairs(flights) do
    local key, s = one[1], one[2]
    keys[i] = key
    status[2 * i - 1], status[2 * i] = key, write_state(token, s)
    items[i] = string.format('%s %d %d', key, s.n, s.wt)
    queries[i] = one[3]
    foreign = foreign or one[3] ~= ''
  end
  redis.call('ZADD', U .. ':p', T + O.permit, permit)
  redis.call('RPUSH', U .. ':k:' .. token, T, unpack(keys))
  redis.call('HSET', U .. ':s', unpack(status))
  if probe then
    if S.breaker == 'open' then turn('half') end
    S.probe = permit
    redis.call('HSET', U, 'probe', permit)
  end
  if S.trial ~= '' then
    S.trial = permit
    redis.call('HSET', U, 'trial', permit)
  end
  if O.spacing > 0 then
    S.next = math.max(T, S.next) + O.spacing
    redis.call('HSET', U, 'next', string.format('%.3f', S.next))
  end
  count('calls', 1)
  count('items', #keys)
  return { token, tostring(S.gen), S.single and '1' or '0', table.concat(items, ' '), foreign and queries or {} }
end

-- Calls to make of new flights at once, without going through the list, where nobody waits in it; the rest waits.
local function take_new(flights, calls)
  local at = 1
  if O.now and S.breaker == 'closed' and redis.call('ZCARD', U .. ':w') == 0 then
    while at <= #flights and #calls < O.calls do
      local size = gate()
      if not size then break end
      local part = {}
      for i = at, math.min(#flights, at + size - 1) do part[#part + 1] = flights[i] end
      calls[#calls + 1] = grant('n' .. #calls, part, false)
      at = at + #part
    end
  end
  local again, due = {}, {}
  for i = at, #flights do wait_again(again, due, flights[i][1], flights[i][2], 0) end
  put_waiting(again, due)
end

-- Calls to make now, at most O.calls, and in how many ms to look again (-1: somebody will say).
local function take(calls)
  local wake = -1
  if O.calls == 0 then return wake end
  for _, permit in ipairs(redis.call('ZRANGEBYSCORE', U .. ':p', '-inf', T)) do
    redis.call('ZREM', U .. ':p', permit)
    release(string.match(permit, '|(.+)$'))
  end
  while #calls < O.calls do
    local first = redis.call('ZRANGE', U .. ':w', 0, 0, 'WITHSCORES')
    if #first == 0 then return -1 end
    local head = tonumber(first[2])
    if head > T then return head - T end
    local size, probe = gate()
    if not size then return probe end
    if size > 1 and not O.now and T - head < O.window and redis.call('ZCOUNT', U .. ':w', '-inf', T) < size then
      return O.window - (T - head)
    end
    local keys = redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, size)
    local queries, of = all_of('HMGET', U .. ':q', keys), states(keys)
    local chosen, gone, bytes, suspects = {}, {}, 0, false
    for n, key in ipairs(keys) do
      local s = read_state(of[n])
      local mine = has(s.ps, ME)
      if not any_alive(s.ps) then
        gone[#gone + 1] = key
      elseif mine or queries[n] then
        local query = queries[n] or ''
        if #chosen == 0 then suspects = s.cap > 0 end
        -- What may have spoiled a batch travels with its like only.
        local room = s.cap > 0 and math.min(size, s.cap) or size
        if (s.cap > 0) == suspects and #chosen < room and (#chosen == 0 or bytes + #query <= O.bytes) then
          size = room
          bytes = bytes + #query
          chosen[#chosen + 1] = { key, s, mine and '' or query }
        end
      end
    end
    drop(gone)
    for _, one in ipairs(chosen) do gone[#gone + 1] = one[1] end
    -- What is left is for those who know its query; they are told where they wait.
    if #gone == 0 then return -1 end
    bulk('ZREM', U .. ':w', gone)
    if #chosen > 0 then calls[#calls + 1] = grant(#calls, chosen, probe) end
  end
  return 0
end

-- What an upstream has in Redis goes when nobody has asked it for long.
local function stay()
  redis.call('PEXPIRE', U, 604800000)
  for _, name in ipairs({ ':w', ':q', ':s' }) do redis.call('PEXPIRE', U .. name, 3600000) end
end

-- What every script answers: wake ms, events, calls; of the keys asked about a code each, and the values of those
-- codes that have one; names of processes. Few texts, because each costs the reader more than its bytes.
local function reply(found, calls, procs)
  calls = calls or {}
  local codes, values = {}, {}
  for i, one in ipairs(found or {}) do
    codes[i] = one[1]
    if one[2] then values[#values + 1] = one[2] end
  end
  local wake = take(calls)
  if O.calls == 0 and redis.call('ZCARD', U .. ':p') < O.concurrency then
    local first = redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, 1)
    if first[1] then post(read_state(redis.call('HGET', U .. ':s', first[1])).ps, first[1], 'k', '', ME) end
  end
  send()
  return { tostring(wake), events, calls, table.concat(codes), values, procs or {} }
end
