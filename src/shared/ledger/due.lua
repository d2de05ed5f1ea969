-- Members to be queued now. First those that have a place already: a queued one that nobody began is queued again (its job
-- may be lost), one whose lease ran out is given back. Then, as many as the fleet dealt, those that wait for a place.
-- ARGV  1 epoch  2 ms until a member is queued again if nobody begins it  3 most of the first kind  4.. pairs of lane, places
-- Gives the counts of the lanes afterwards, then flat quadruples of member "g-m", lane, number of its next begin, '1' if it
-- is to be alone ('0'); one that was given back stands there with an empty lane and the worker that lost it in place of the
-- number. {} if the run rests, -1 if not the driver.
if not drives(ARGV[1]) then return -1 end
if run_field('state') ~= 'running' then return {} end
local t, out, again = now(), {}, int(ARGV[2])
local function tell(id, lane, begins, deaths)
  out[#out + 1] = id
  out[#out + 1] = lane
  out[#out + 1] = tostring(int(begins) + 1)
  out[#out + 1] = deaths and '1' or '0'
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', K .. ':live', '-inf', t, 'LIMIT', 0, ARGV[3])) do
  local g, m = string.match(id, '^(%d+)-(%d+)$')
  local f = redis.call('HMGET', group_key(g), m .. '.s', m .. '.l', m .. '.n', m .. '.q', m .. '.dn', m .. '.w')
  if f[2] and int(f[2]) > t then
    redis.call('ZADD', K .. ':live', f[2], id)
  elseif f[1] == 'rolling' or f[1] == 'verifying' or not f[4] then
    redis.call('HINCRBY', RUN, 'lost', 1)
    give_back(g, m, 0)
    for _, text in ipairs({id, '', f[6] or '', '0'}) do out[#out + 1] = text end
  else
    redis.call('ZADD', K .. ':live', t + again, id)
    tell(id, f[4], f[3], f[5])
  end
end
-- Members of one group stand together: what is written of them is written together.
local function give_places(lane, ids)
  local live, n = {}, 1
  while n <= #ids do
    local g, first, kept, asked = string.match(ids[n], '^(%d+)-'), n, {}, {}
    while n <= #ids and n - first < 400 do
      local of, m = string.match(ids[n], '^(%d+)-(%d+)$')
      if of ~= g then break end
      kept[#kept + 1], kept[#kept + 2] = m .. '.q', lane
      asked[#asked + 1], asked[#asked + 2] = m .. '.n', m .. '.dn'
      live[#live + 1], live[#live + 2] = t + again, ids[n]
      n = n + 1
    end
    redis.call('HSET', group_key(g), unpack(kept))
    local f = redis.call('HMGET', group_key(g), unpack(asked))
    for j = first, n - 1 do tell(ids[j], lane, f[2 * (j - first) + 1], f[2 * (j - first) + 2]) end
  end
  call_all('ZREM', due_key(lane), ids)
  call_all('ZADD', K .. ':live', live)
  redis.call('HINCRBY', RUN, 'out:' .. lane, #ids)
end
for i = 4, #ARGV, 2 do
  local lane, places = ARGV[i], int(ARGV[i + 1])
  if places > 0 then
    local ids = redis.call('ZRANGEBYSCORE', due_key(lane), '-inf', t, 'LIMIT', 0, places)
    if #ids > 0 then give_places(lane, ids) end
  end
end
local answer = lane_counts({})
for _, text in ipairs(out) do answer[#answer + 1] = text end
return answer
