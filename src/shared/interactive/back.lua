-- A worker gives a sample back: its box was lost (it is tried once more, elsewhere if there is somebody), or the worker stops.
-- ARGV  1 id  2 token  3 tries that it may have, 0: not counted  4 signature  5 outcome if that was the last
-- Gives 1, or 0 if the token does not hold the sample any more.
local id = ARGV[1]
local call, gate, token = unpack(redis.call('HMGET', sample(id), 'call', 'gate', 'token'))
if token ~= ARGV[2] then return 0 end
local most = tonumber(ARGV[3])
if most > 0 and redis.call('HINCRBY', sample(id), 'tries', 1) >= most then
  finish(id, gate, ARGV[5])
  return 1
end
redis.call('HDEL', sample(id), 'token')
redis.call('HSET', sample(id), 'signature', ARGV[4])
redis.call('ZREM', K .. ':leases', id)
line_up(id, call, most == 0)
tell(gate, 'l ' .. id)
redis.call('PUBLISH', K .. ':bell', '1')
return 1
