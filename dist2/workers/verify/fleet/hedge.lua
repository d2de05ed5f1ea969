-- A call hangs: permits for asking its queries again in smaller calls, while it is still out. Its flights stay its own.
-- ARGV  1 options (JSON; `hung` its token, `items` how many queries each call has)  2.. their keys, call by call
-- Gives the permits as names, as many as there may be now
here()
local permits, at = {}, 1
if S.breaker == 'closed' and S.refused <= T and redis.call('EXISTS', U .. ':k:' .. O.hung) == 1 then
  for i = 1, #O.items do
    if not gate() then break end
    local permit = O.hung .. '+' .. O.token .. '.' .. i
    redis.call('ZADD', U .. ':p', T + O.permit, ME .. '|' .. permit)
    out = out and out + 1
    if S.trial ~= '' then
      S.trial = ME .. '|' .. permit
      redis.call('HSET', U, 'trial', S.trial)
    end
    local keys = {}
    for n = 1, O.items[i] do keys[n] = ARGV[at + n] end
    at = at + #keys
    redis.call('RPUSH', U .. ':k:' .. permit, T, unpack(keys))
    redis.call('PEXPIRE', U .. ':k:' .. permit, O.permit + 600000)
    space()
    charge(O.items[i])
    count('hedges', 1)
    permits[i] = permit
  end
end
return reply({}, nil, permits)
