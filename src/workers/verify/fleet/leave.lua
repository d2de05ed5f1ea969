-- This process waits no more for some queries; one that nobody waits for and that is not yet asked is given up.
-- ARGV  1 options (JSON)  2.. keys
for i = 2, #ARGV do
  local f = redis.call('HMGET', flight(ARGV[i]), 'ps', 's')
  if f[1] then
    local from, to = string.find(f[1], ' ' .. ME .. ' ', 1, true)
    local ps = from and string.sub(f[1], 1, from) .. string.sub(f[1], to + 1) or f[1]
    if f[2] == 'w' and not any_alive(ps) then
      drop(ARGV[i])
    else
      redis.call('HSET', flight(ARGV[i]), 'ps', ps)
    end
  end
end
return reply()
