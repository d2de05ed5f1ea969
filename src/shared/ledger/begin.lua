-- Begins attempts at members: draws the fencing token of each, unless somebody's lease on it is fresh.
-- A suspect, under which a worker died, is begun only where nothing is at work beside it, so that one more death proves
-- something: until its worker says so it is refused, and given back if the worker dies meanwhile.
-- ARGV  1 stage ('rollout' | 'verify')  2 worker  3 lease ms  4 nothing else is at work in the worker (0 | 1)
--       5 suspects too: no other member is begun there until this one ends (0 | 1)  6.. triples of group, member, token
-- Gives for each {'begun', attempt, task, place, rolled text, blobs, signature of an earlier death} or {'refused', why}; a list
-- that ends after the attempt says that task and place are those of the one begun before, and that there is nothing else.
local stage, worker, lease, alone, suspects = ARGV[1], ARGV[2], int(ARGV[3]), ARGV[4] == '1', ARGV[5] == '1'
local state, t, size = run_field('state'), now(), int(run_field('size'))
local NAMES = {'.s', '.l', '.a', '.c', '.b', '.x', '.q', '.dn', '.n'}
local answer, said = {}, nil

-- Different members of one group: one look at the group, and its writes together.
local function begin(g, members, tokens)
  local key, fields = group_key(g), {'task', 'place', 'began', 'lane'}
  for _, m in ipairs(members) do
    for _, name in ipairs(NAMES) do fields[#fields + 1] = m .. name end
  end
  local f = redis.call('HMGET', key, unpack(fields))
  local gone, kept, live, flight, out, began = {}, {}, {}, {}, {}, false

  local function one(m, token, at)
    local s, l, a, c, b, x, q, deaths, begins = unpack(f, at, at + 8)
    local id = g .. '-' .. m
    if not f[1] then return {'refused', 'closed'} end
    -- A job that is not ours may name anybody.
    if int(m) >= size then return {'refused', 'unknown'} end
    s = s or 'open'
    if s == 'accepted' then return {'refused', 'accepted'} end
    if l and int(l) > t then return {'refused', 'leased'} end
    local rolled = s == 'rolled' or s == 'verifying'
    if rolled ~= (stage == 'verify') then return {'refused', s} end
    -- A job of an earlier begin: its member was given back since, and waits for a place.
    if not q then
      local lane = lane_of(s, f[4])
      redis.call('ZREM', due_key(lane), id)
      kept[#kept + 1], kept[#kept + 2] = m .. '.q', lane
      out[lane] = (out[lane] or 0) + 1
      live[#live + 1], live[#live + 2] = t, id
    end
    if not alone then gone[#gone + 1] = m .. '.i' end
    if deaths and not suspects then
      -- Whoever had it before has lost it: its lease is over.
      gone[#gone + 1], gone[#gone + 2] = m .. '.t', m .. '.l'
      kept[#kept + 1], kept[#kept + 2] = m .. '.w', worker
      kept[#kept + 1], kept[#kept + 2] = m .. '.p', 'waiting to be alone with a worker: another died under it'
      return {'refused', 'suspect'}
    end
    local k = #kept
    kept[k + 1], kept[k + 2] = m .. '.t', token
    kept[k + 3], kept[k + 4] = m .. '.l', t + lease
    kept[k + 5], kept[k + 6] = m .. '.w', worker
    kept[k + 7], kept[k + 8] = m .. '.s', rolled and 'verifying' or 'rolling'
    kept[k + 9], kept[k + 10] = m .. '.p', stage
    kept[k + 11], kept[k + 12] = m .. '.n', int(begins) + 1
    if alone then kept[k + 13], kept[k + 14] = m .. '.i', 1 end
    live[#live + 1], live[#live + 2] = t + lease, id
    flight[#flight + 1], flight[#flight + 2] = t, id
    began = true
    local short = said == g and not (c or b or x)
    said = g
    if short then return {'begun', a and tostring(int(a) + 1) or '1'} end
    return {'begun', tostring(int(a) + 1), f[1], f[2], c or '', b or '', x or ''}
  end

  for n, m in ipairs(members) do answer[#answer + 1] = one(m, tokens[n], 5 + 9 * (n - 1)) end
  for lane, n in pairs(out) do redis.call('HINCRBY', RUN, 'out:' .. lane, n) end
  call_all('HDEL', key, gone)
  call_all('HSET', key, kept)
  call_all('ZADD', K .. ':live', live)
  if #flight > 0 then redis.call('ZADD', K .. ':flight', 'NX', unpack(flight)) end
  if began and not f[3] then
    local clock = int(run_field('clock'))
    redis.call('HSET', key, 'began', clock)
    redis.call('ZADD', K .. ':deadlines', clock + int(run_field('deadline_ms')), g)
  end
end

local i = 6
while i <= #ARGV do
  local g, members, tokens, seen = ARGV[i], {}, {}, {}
  while ARGV[i] == g and not seen[ARGV[i + 1]] and #members < 100 do
    members[#members + 1], tokens[#tokens + 1], seen[ARGV[i + 1]] = ARGV[i + 1], ARGV[i + 2], true
    i = i + 3
  end
  if state == 'running' then
    begin(g, members, tokens)
  else
    for _ = 1, #members do answer[#answer + 1] = {'refused', state or 'unknown'} end
  end
end
return answer
