-- A worker is there, with what it has.
-- ARGV  1 ms of a lease  then ID, token, …
-- Gives the ids that are not its own any more.
local gone = {}
for i = 2, #ARGV, 2 do
  local id = ARGV[i]
  local gate, token = unpack(redis.call('HMGET', sample(id), 'gate', 'token'))
  if token == ARGV[i + 1] and heard(gate) then
    redis.call('ZADD', K .. ':leases', T + tonumber(ARGV[1]), id)
  else
    if token == ARGV[i + 1] then drop(id) end
    gone[#gone + 1] = id
  end
end
reclaim()
return gone
