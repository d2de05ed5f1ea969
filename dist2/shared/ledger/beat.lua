-- Renews the leases of members at work, and tells each how it stands.
-- ARGV  1 lease ms  2.. quadruples of group, member, token, phase
-- Gives a list, in order: 'ok' | 'superseded' | 'closed' | 'cancelled' | 'stopped'
local t, out, state = now(), {}, run_field('state')
for i = 2, #ARGV, 4 do
  local g, m, token = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local why = speaks(g, m, token)
  if why then
    out[#out + 1] = why
  else
    local till = t + int(ARGV[1])
    redis.call('HSET', group_key(g), m .. '.l', till, m .. '.p', ARGV[i + 3])
    redis.call('ZADD', K .. ':live', till, g .. '-' .. m)
    out[#out + 1] = state == 'stopped' and 'stopped' or 'ok'
  end
end
return out
