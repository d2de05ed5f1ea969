-- What every script of the interactive lane shares (script.ts puts it in front of each). Redis is the judge of time;
-- what a sample contains, and what became of it, are opaque texts.
--
-- All keys lie in the hash slot of KEYS[1] = farm:{lane:REALM}.
--   :calls   list    calls with samples that wait, in rotation: a small call is not behind a large one
--   :w:CALL  list    its samples that wait
--   :c:CALL  string  what its samples share
--   :s:ID    hash    a sample: call, gate, content, until; token while a worker has it; tries, deaths, signature
--   :leases  zset    samples that a worker has, by the end of its lease
--   :g:GATE  string  there while whoever asked is heard of
--   :r:GATE  list    what it is told: "t ID" taken, "l ID" lost with its worker, "r ID OUTCOME" over
--   :bell    channel samples wait
--
--   (none) --submit--> waiting --take--> held --settle--> (none)
--                         ^---- back, or lease over ----'   withdrawn, or nobody hears: (none)

local K = KEYS[1]
local TIME = redis.call('TIME')
local T = TIME[1] * 1000 + math.floor(TIME[2] / 1000)
-- Everything goes by itself when nobody renews it.
local LIFE, HEARD = 120000, 10000
-- Workers that may die with a sample.
local DEATHS = 3

local function alive_for(key, ms)
  if redis.call('PTTL', key) < ms then redis.call('PEXPIRE', key, ms) end
end

local function sample(id) return K .. ':s:' .. id end

local function tell(gate, text)
  local key = K .. ':r:' .. gate
  redis.call('RPUSH', key, text)
  redis.call('PEXPIRE', key, LIFE)
end

local function heard(gate) return redis.call('EXISTS', K .. ':g:' .. gate) == 1 end

local function line_up(id, call, first)
  local line = K .. ':w:' .. call
  if redis.call(first and 'LPUSH' or 'RPUSH', line, id) == 1 then redis.call('RPUSH', K .. ':calls', call) end
  alive_for(line, LIFE)
  alive_for(K .. ':calls', LIFE)
end

local function drop(id)
  redis.call('ZREM', K .. ':leases', id)
  redis.call('DEL', sample(id))
end

local function finish(id, gate, outcome)
  drop(id)
  tell(gate, 'r ' .. id .. ' ' .. outcome)
end

-- Samples whose workers are not heard of any more wait again, in front.
local function reclaim()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', K .. ':leases', '-inf', T, 'LIMIT', 0, 100)) do
    redis.call('ZREM', K .. ':leases', id)
    local call, gate = unpack(redis.call('HMGET', sample(id), 'call', 'gate'))
    if call then
      redis.call('HDEL', sample(id), 'token')
      if redis.call('HINCRBY', sample(id), 'deaths', 1) < DEATHS then
        line_up(id, call, true)
        tell(gate, 'l ' .. id)
        redis.call('PUBLISH', K .. ':bell', '1')
      else
        finish(id, gate, '{"status":"no_result","cause":"sandbox_lost","detail":"its workers died under it again and again"}')
      end
    end
  end
end
