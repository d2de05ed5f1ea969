-- Flights: queries that somebody waits for, waiting to be asked or being asked.

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
  -- A part of a call that hung: the flights are the call's.
  local holder = string.match(token, '^(.-)%+') or token
  local keys = redis.call('LRANGE', U .. ':k:' .. token, 1, -1)
  local of, again, due, gone = states(keys), {}, {}, {}
  for i, key in ipairs(keys) do
    local s = read_state(of[i])
    if s.token == holder then
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
