-- The next sample, call after call, for a worker.
-- ARGV  1 token  2 ms of its lease
-- Gives {id, shared, content, ms left, signature of an earlier loss or ''}, or nothing.
while true do
  local call = redis.call('LPOP', K .. ':calls')
  if not call then return {} end
  local line = K .. ':w:' .. call
  local id = redis.call('LPOP', line)
  if redis.call('LLEN', line) > 0 then redis.call('RPUSH', K .. ':calls', call) end
  if id then
    local gate, content, ends, signature = unpack(redis.call('HMGET', sample(id), 'gate', 'content', 'until', 'signature'))
    local shared = redis.call('GET', K .. ':c:' .. call)
    if gate and shared and heard(gate) and tonumber(ends) > T then
      redis.call('HSET', sample(id), 'token', ARGV[1])
      redis.call('ZADD', K .. ':leases', T + tonumber(ARGV[2]), id)
      tell(gate, 't ' .. id)
      return {id, shared, content, tostring(tonumber(ends) - T), signature or ''}
    end
    drop(id)
  end
end
