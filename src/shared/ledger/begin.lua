-- Begins an attempt at a member: draws its fencing token, unless somebody's lease on it is fresh.
-- ARGV  1 group  2 member  3 stage ('rollout' | 'verify')  4 token  5 worker  6 lease ms
-- Gives {'begun', attempt, task, place, rolled text, blobs, signature of an earlier death} or {'refused', why}
local g, m, stage = ARGV[1], ARGV[2], ARGV[3]
local state = run_field('state')
if not state then return {'refused', 'unknown'} end
if state ~= 'running' then return {'refused', state} end
local key = group_key(g)
local f = redis.call('HMGET', key, 'task', 'place', m .. '.s', m .. '.l', m .. '.a', m .. '.c', m .. '.b', m .. '.x', 'began', m .. '.q', 'lane')
if not f[1] then return {'refused', 'closed'} end
local at, t = f[3] or 'open', now()
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
redis.call('HSET', key, m .. '.t', ARGV[4], m .. '.l', t + int(ARGV[6]), m .. '.w', ARGV[5], m .. '.s', rolled and 'verifying' or 'rolling', m .. '.p', stage)
redis.call('HINCRBY', key, m .. '.n', 1)
redis.call('ZADD', K .. ':live', t + int(ARGV[6]), g .. '-' .. m)
redis.call('ZADD', K .. ':flight', 'NX', t, g .. '-' .. m)
if not f[9] then
  local clock = int(run_field('clock'))
  redis.call('HSET', key, 'began', clock)
  redis.call('ZADD', K .. ':deadlines', clock + int(run_field('deadline_ms')), g)
end
return {'begun', tostring(int(f[5]) + 1), f[1], f[2], f[6] or '', f[7] or '', f[8] or ''}
