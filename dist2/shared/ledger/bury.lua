-- A worker is known to be dead: its members are due at once, and nothing is charged. A death with a signature makes
-- suspects of those it had at work; one that was alone in its worker, at as many deaths of one signature as make poison,
-- is set aside. Neighbours never are: nothing is proven of them.
-- ARGV  1 worker  2 signature or '' (a death from outside)  3 deaths that make poison
-- Gives the number of members given back.
local held = {}
for _, id in ipairs(redis.call('ZRANGE', K .. ':flight', 0, -1)) do
  local g, m = string.match(id, '^(%d+)-(%d+)$')
  local f = redis.call('HMGET', group_key(g), m .. '.w', m .. '.t', m .. '.ds', m .. '.dn', m .. '.da', m .. '.a', m .. '.i')
  if f[1] == ARGV[1] then held[#held + 1] = { g = g, m = m, begun = f[2], same = f[3] == ARGV[2], deaths = int(f[4]), alone = int(f[5]), attempts = int(f[6]), proven = f[7] } end
end
for _, x in ipairs(held) do
  local g, m, alone = x.g, x.m, 0
  local key = group_key(g)
  if x.begun and ARGV[2] ~= '' then
    alone = (x.same and x.alone or 0) + (x.proven and 1 or 0)
    redis.call('HSET', key, m .. '.ds', ARGV[2], m .. '.dn', (x.same and x.deaths or 0) + 1, m .. '.da', alone)
  end
  if alone >= int(ARGV[3]) then
    settle(g, m, 'no_result', '{"member":' .. m .. ',"status":"no_result","cause":"poison","detail":"' .. ARGV[2] .. '","attempts":' .. (x.attempts + 1) .. '}', '', 'poison')
  else
    -- A suspect that waited for its turn has a job of this begin still: it is queued as the next one.
    if not x.begun then redis.call('HINCRBY', key, m .. '.n', 1) end
    give_back(g, m, 0)
  end
end
return #held
