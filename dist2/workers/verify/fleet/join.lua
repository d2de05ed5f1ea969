-- Wants answers: from the cache, from a flight that is under way, or from a new one. Takes what is to be asked now.
-- ARGV  1 options (JSON)  2 base URL, for people  3.. pairs of key, sealed query (or '': to be told later, by `tell`)
-- Gives a code for each key, and its value
here()
redis.call('HSET', U, 'base', ARGV[2], 'platform', O.platform, 'key', O.key)
redis.call('ZADD', K .. ':upstreams', T, O.up)
local code, detail = shut()
local keys = {}
for i = 3, #ARGV, 2 do keys[#keys + 1] = ARGV[i] end
local values = O.cache and recall(keys) or {}
local of = states(keys)
local out, hits, joins, new = {}, 0, O.joined, 0
local queries, status, fresh = {}, {}, {}
-- A query costs once however often it comes back: an outage, a cancelled wait or a lost answer charges nothing anew.
local spent_key, spent, paid, owed = K .. ':spent:' .. O.epoch, 0, {}, {}
if O.budget >= 0 then
  spent = redis.call('SCARD', spent_key)
  local names = {}
  for i, key in ipairs(keys) do names[i] = charged_as(key) end
  paid = all_of('SMISMEMBER', spent_key, names)
end
for i, key in ipairs(keys) do
  local one = { 'w' }
  if values[i] then
    hits = hits + 1
    one = { 'v', values[i] }
  elseif of[i] then
    joins = joins + 1
    local s = read_state(of[i])
    local known = has(s.ps, ME)
    if not known or O.ttl > s.ttl then
      if not known then s.ps = s.ps .. ME .. ' ' end
      s.ttl = math.max(s.ttl, O.ttl)
      status[#status + 1] = key
      status[#status + 1] = write_state(s.token, s)
    end
  elseif code then
    one = { code, detail }
  elseif O.budget >= 0 and paid[i] ~= 1 and spent + #owed >= O.budget then
    one = { 'b' }
  else
    new = new + 1
    if O.budget >= 0 and paid[i] ~= 1 then owed[#owed + 1] = charged_as(key) end
    one[1] = 'f'
    local query = ARGV[2 * i + 2]
    if query ~= '' then
      queries[#queries + 1] = key
      queries[#queries + 1] = query
    end
    fresh[new] = { key, { n = 0, wt = 0, cap = 0, deaths = 0, ttl = O.ttl, ps = ' ' .. ME .. ' ' }, '' }
  end
  out[i] = one
end
bulk('HSET', U .. ':q', queries)
bulk('HSET', U .. ':s', status)
local calls = {}
take_new(fresh, calls)
bulk('SADD', spent_key, owed)
if #owed > 0 then redis.call('PEXPIRE', spent_key, 7776000000) end
count('hits', hits)
count('joins', joins)
count('queries', new)
stay()
return reply(out, calls)
