-- Begins attempts at members: draws the fencing token of each, unless somebody's lease on it is fresh.
-- A suspect, under which a worker died, is begun only where nothing is at work beside it, so that one more death proves
-- something: until its worker says so it is refused, and given back if the worker dies meanwhile.
-- ARGV  1 stage ('rollout' | 'verify')  2 worker  3 lease ms  4 nothing else is at work in the worker (0 | 1)
--       5 suspects too: no other member is begun there until this one ends (0 | 1)  6.. triples of group, member, token
-- Gives for each {'begun', attempt, task, place, rolled text, blobs, signature of an earlier death} or {'refused', why}
local stage, worker, lease, alone, suspects = ARGV[1], ARGV[2], int(ARGV[3]), ARGV[4] == '1', ARGV[5] == '1'
local state, t, size = run_field('state'), now(), int(run_field('size'))

local function begin(g, m, token)
  if not state then return {'refused', 'unknown'} end
  if state ~= 'running' then return {'refused', state} end
  -- A job that is not ours may name anybody.
  if int(m) >= size then return {'refused', 'unknown'} end
  local key = group_key(g)
  local f = redis.call('HMGET', key, 'task', 'place', m .. '.s', m .. '.l', m .. '.a', m .. '.c', m .. '.b', m .. '.x', 'began', m .. '.q', 'lane', m .. '.dn')
  if not f[1] then return {'refused', 'closed'} end
  local at = f[3] or 'open'
  if at == 'accepted' then return {'refused', 'accepted'} end
  if f[4] and int(f[4]) > t then return {'refused', 'leased'} end
  local rolled = at == 'rolled' or at == 'verifying'
  if rolled ~= (stage == 'verify') then return {'refused', at} end
  -- A job of an earlier begin: its member was given back since, and waits for a place.
  if not f[10] then
    local lane = lane_of(at, f[11])
    redis.call('ZREM', due_key(lane), g .. '-' .. m)
    take_place(g, m, lane, t)
  end
  if f[12] and not suspects then
    -- Whoever had it before has lost it: its lease is over.
    redis.call('HDEL', key, m .. '.t', m .. '.l', m .. '.i')
    redis.call('HSET', key, m .. '.w', worker, m .. '.p', 'waiting to be alone with a worker: another died under it')
    return {'refused', 'suspect'}
  end
  redis.call('HDEL', key, m .. '.i')
  if alone then redis.call('HSET', key, m .. '.i', 1) end
  redis.call('HSET', key, m .. '.t', token, m .. '.l', t + lease, m .. '.w', worker, m .. '.s', rolled and 'verifying' or 'rolling', m .. '.p', stage)
  redis.call('HINCRBY', key, m .. '.n', 1)
  redis.call('ZADD', K .. ':live', t + lease, g .. '-' .. m)
  redis.call('ZADD', K .. ':flight', 'NX', t, g .. '-' .. m)
  if not f[9] then
    local clock = int(run_field('clock'))
    redis.call('HSET', key, 'began', clock)
    redis.call('ZADD', K .. ':deadlines', clock + int(run_field('deadline_ms')), g)
  end
  return {'begun', tostring(int(f[5]) + 1), f[1], f[2], f[6] or '', f[7] or '', f[8] or ''}
end

local answer = {}
for i = 6, #ARGV, 3 do answer[#answer + 1] = begin(ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
return answer
