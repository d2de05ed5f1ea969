-- What every script of the ledger shares (script.ts puts it in front of each). Redis is the judge of time;
-- rewards, texts and blobs pass through untouched: this file never parses a number that a completion earned.
--
-- Keys of a run, all in the hash slot of KEYS[1] = farm:{RUN}
--   :run        hash    settings, state, clock, counters, the driver's and the collector's marks
--   :g:N        hash    one open group: task, place, left, done, refills, began; a member K has K.s K.t K.l K.w K.n K.a K.c K.o K.b K.x K.p
--   :live       zset    open members "g-m" by the time (ms) at which they are due to be queued (again)
--   :flight     zset    begun members "g-m" by the time of their first begin
--   :deadlines  zset    open groups by the run clock (ms) at which they close
--   :out        stream  closed groups not yet committed to a shard; id SEQ-0, SEQ dense from 1
--   :closed     bitmap  groups that are closed
--   :causes     hash    count of members without result, by cause
--   :late       stream  evidence: answers that were not counted (capped)
--
-- A member:  (open) --begin--> rolling --accept--> accepted
--                                 `--rolled--> rolled --begin--> verifying --accept--> accepted
--            a lost lease goes back to (open) or to rolled; nothing leaves accepted.

local K = KEYS[1]
local RUN = K .. ':run'


local function int(v)
  return tonumber(v or '0') or 0
end

local function group_key(g)
  return K .. ':g:' .. g
end

local function run_field(name)
  return redis.call('HGET', RUN, name)
end

-- Milliseconds, by Redis's clock made steady: what that was ever set back is added (steady_clock), else every lease and every
-- due time written before would hold for as long as the clock went back.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000) + int(run_field('skew'))
end

-- Called by who ticks and who takes the lease: notices that the clock went back since it was last looked at.
local function steady_clock()
  local t, seen = now(), int(run_field('seen'))
  if t < seen - 1000 then
    redis.call('HINCRBY', RUN, 'skew', seen - t)
    t = seen
  end
  redis.call('HSET', RUN, 'seen', math.max(t, seen))
  return t
end

local function count_cause(cause)
  redis.call('HINCRBY', K .. ':causes', cause, 1)
end

-- Closes group g once: the stream entry has every member's text, made here only for those who have none.
local function close_group(g, by, cause)
  local key = group_key(g)
  local flat = redis.call('HGETALL', key)
  if #flat == 0 then return end
  local f = {}
  for i = 1, #flat, 2 do f[flat[i]] = flat[i + 1] end
  local size = int(run_field('size'))
  local texts, blobs, missing = {}, {}, 0
  for m = 0, size - 1 do
    local text = f[m .. '.o']
    if not text then
      local attempts = int(f[m .. '.n']) > 0 and int(f[m .. '.a']) + 1 or 0
      text = '{"member":' .. m .. ',"status":"no_result","cause":"' .. cause .. '","detail":"","attempts":' .. attempts .. '}'
      missing = missing + 1
      redis.call('ZREM', K .. ':live', g .. '-' .. m)
      redis.call('ZREM', K .. ':flight', g .. '-' .. m)
    end
    texts[m + 1] = text
    if f[m .. '.b'] then blobs[#blobs + 1] = f[m .. '.b'] end
  end
  if missing > 0 then
    redis.call('HINCRBY', RUN, 'accepted', missing)
    redis.call('HINCRBY', RUN, 'no_result', missing)
    redis.call('HINCRBY', K .. ':causes', cause, missing)
  end
  local seq = redis.call('HINCRBY', RUN, 'closed', 1)
  redis.call('XADD', K .. ':out', seq .. '-0', 'group', g, 'task', f['task'], 'by', by,
    'members', '[' .. table.concat(texts, ',') .. ']', 'blobs', table.concat(blobs))
  redis.call('SETBIT', K .. ':closed', g, 1)
  redis.call('ZREM', K .. ':deadlines', g)
  redis.call('DEL', key)
  redis.call('PUBLISH', K .. ':closed', seq)
end

-- Takes the outcome of member m, whose right to speak has been checked, and closes the group if that was all it waited for.
local function settle(g, m, status, text, blobs, cause)
  local key = group_key(g)
  redis.call('HDEL', key, m .. '.t', m .. '.l', m .. '.w', m .. '.c', m .. '.p', m .. '.b')
  redis.call('HSET', key, m .. '.o', text, m .. '.s', 'accepted')
  if blobs ~= '' then redis.call('HSET', key, m .. '.b', blobs) end
  redis.call('ZREM', K .. ':live', g .. '-' .. m)
  redis.call('ZREM', K .. ':flight', g .. '-' .. m)
  redis.call('HINCRBY', RUN, 'accepted', 1)
  redis.call('HINCRBY', RUN, status, 1)
  if status == 'no_result' then count_cause(cause) end
  local left = redis.call('HINCRBY', key, 'left', -1)
  local done = redis.call('HINCRBY', key, 'done', status == 'completed' and 1 or 0)
  if left == 0 then
    close_group(g, 'all', '')
  elseif run_field('close') == 'at_least' and done >= int(run_field('at_least')) then
    close_group(g, 'at_least', 'group_closed')
  end
end

-- The holder of `token` may speak for member m; anyone else leaves evidence, and is told what became of it.
local function speaks(g, m, token)
  local held = redis.call('HGET', group_key(g), m .. '.t')
  if held == token then return nil end
  local why = redis.call('GETBIT', K .. ':closed', g) == 1 and 'closed' or 'superseded'
  if run_field('state') == 'cancelled' then why = 'cancelled' end
  return why
end

local function evidence(g, m, token, why, text)
  redis.call('HINCRBY', RUN, 'late', 1)
  redis.call('XADD', K .. ':late', 'MAXLEN', '~', '1000', '*', 'group', g, 'member', m, 'token', token, 'why', why, 'text', string.sub(text, 1, 2000))
end

-- Gives member m back to the due set, to be begun again after delay ms.
local function give_back(g, m, delay)
  local key = group_key(g)
  local stage = redis.call('HGET', key, m .. '.s')
  redis.call('HDEL', key, m .. '.t', m .. '.l', m .. '.w', m .. '.p')
  redis.call('HSET', key, m .. '.s', stage == 'verifying' and 'rolled' or (stage == 'rolled' and 'rolled' or 'open'))
  redis.call('ZADD', K .. ':live', now() + delay, g .. '-' .. m)
end

local function drives(epoch)
  return run_field('driver_epoch') == epoch
end
