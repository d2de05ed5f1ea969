-- Wants answers: from the cache, from a flight that is under way, or from a new one. Takes what is to be asked now.
-- ARGV  1 options (JSON)  2 base URL, for people  3.. pairs of key, sealed query
-- Gives, for each key, {code, value}
here()
redis.call('HSET', U, 'base', ARGV[2], 'platform', O.platform, 'key', O.key)
redis.call('PEXPIRE', U, 604800000)
redis.call('ZADD', K .. ':upstreams', T, O.up)
local code, detail = shut()
local out, hits, joins, new, waiting = {}, 0, O.joined, 0, {}
local spent_key = K .. ':spent:' .. O.epoch
local spent = O.budget >= 0 and int(redis.call('GET', spent_key)) or 0
for i = 3, #ARGV, 2 do
  local key = ARGV[i]
  local value = O.cache and recall(key)
  local one
  if value then
    hits = hits + 1
    one = { 'v', value }
  else
    local f = redis.call('HMGET', flight(key), 'ps', 'ttl')
    if f[1] then
      joins = joins + 1
      if not string.find(f[1], ' ' .. ME .. ' ', 1, true) then redis.call('HSET', flight(key), 'ps', f[1] .. ME .. ' ') end
      if O.ttl > int(f[2]) then redis.call('HSET', flight(key), 'ttl', O.ttl) end
      redis.call('PEXPIRE', flight(key), O.flight)
      one = { 'w', '' }
    elseif code then
      one = { code, detail }
    elseif O.budget >= 0 and spent + new >= O.budget then
      one = { 'b', '' }
    else
      new = new + 1
      redis.call('HSET', flight(key), 'q', ARGV[i + 1], 'ps', ' ' .. ME .. ' ', 's', 'w', 'ttl', O.ttl)
      redis.call('PEXPIRE', flight(key), O.flight)
      waiting[#waiting + 1] = T
      waiting[#waiting + 1] = key
      one = { 'w', '' }
    end
  end
  out[#out + 1] = one
end
if new > 0 then redis.call('ZADD', U .. ':w', unpack(waiting)) end
if O.budget >= 0 and new > 0 then
  redis.call('INCRBY', spent_key, new)
  redis.call('PEXPIRE', spent_key, 7776000000)
end
count('hits', hits)
count('joins', joins)
count('queries', new)
return reply(out)
