-- Members that are due to be queued: new ones, those given back, and those whose lease ran out.
-- ARGV  1 epoch  2 limit  3 ms until a member is due again if nobody begins it
-- Gives a flat list of member "g-m", stage ('rollout' | 'verify'), number of its next begin; -1 if not the driver.
if not drives(ARGV[1]) then return -1 end
if run_field('state') ~= 'running' then return {} end
local t, out = now(), {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K .. ':live', '-inf', t, 'LIMIT', 0, ARGV[2])) do
  local g, m = string.match(id, '^(%d+)-(%d+)$')
  local key = group_key(g)
  local f = redis.call('HMGET', key, m .. '.s', m .. '.l', m .. '.n')
  if f[2] and int(f[2]) > t then
    redis.call('ZADD', K .. ':live', f[2], id)
  else
    if f[1] == 'rolling' or f[1] == 'verifying' then
      redis.call('HINCRBY', RUN, 'lost', 1)
      give_back(g, m, int(ARGV[3]))
    else
      redis.call('ZADD', K .. ':live', t + int(ARGV[3]), id)
    end
    local stage = (f[1] == 'rolled' or f[1] == 'verifying') and 'verify' or 'rollout'
    out[#out + 1] = id
    out[#out + 1] = stage
    out[#out + 1] = tostring(int(f[3]) + 1)
  end
end
return out
