-- A worker is known to be dead: its members are due at once. Nothing is charged; but a member under which workers
-- die again and again with one signature is set aside as poison.
-- ARGV  1 worker  2 signature or '' (a death from outside)  3 deaths that make poison
-- Gives the number of members given back.
local n = 0
for _, id in ipairs(redis.call('ZRANGE', K .. ':flight', 0, -1)) do
  local g, m = string.match(id, '^(%d+)-(%d+)$')
  local key = group_key(g)
  local f = redis.call('HMGET', key, m .. '.w', m .. '.t', m .. '.ds', m .. '.dn', m .. '.a')
  if f[1] == ARGV[1] and f[2] then
    n = n + 1
    local deaths = 0
    if ARGV[2] ~= '' then
      deaths = f[3] == ARGV[2] and int(f[4]) + 1 or 1
      redis.call('HSET', key, m .. '.ds', ARGV[2], m .. '.dn', deaths)
    end
    if deaths >= int(ARGV[3]) then
      settle(g, m, 'no_result', '{"member":' .. m .. ',"status":"no_result","cause":"poison","detail":"' .. ARGV[2] .. '","attempts":' .. (int(f[5]) + 1) .. '}', '', 'poison')
    else
      give_back(g, m, 0)
    end
  end
end
return n
