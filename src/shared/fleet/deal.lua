-- A run says what it has in the window of each lane and what it would put in; the free places are dealt. Each turn goes
-- to the asking run with the greatest deficit (who holds least), among equals to the one whose last turn is longest ago,
-- so that equal runs hold equal shares, however long their members take and however many they have; a place that its
-- fair owner does not want is anybody's. What is dealt to others waits for them as a grant, and they are woken.
-- A lane whose members end quickly has a larger window: as many as ended lately in so much time, up to `most`; else the
-- slots would stand empty between an end and the next job. The pace is one for all runs, so that their shares stay equal.
-- ARGV  1 run  2 lease ms  3 ms of the pace that wait ahead  4.. quintuples of lane, places in its window at least, and at
--       most, members that the run has in it, members that it would put in
-- Gives for each lane places that the run may fill now, beyond what it has in, and members that end in a second.
local me, t, answer = ARGV[1], now(), {}

local function holds(r) return r.out + r.grant end

local function deal(askers, free, turn)
  while free > 0 and #askers > 0 do
    local lowest, above = {}, math.huge
    local level = math.huge
    for _, r in ipairs(askers) do level = math.min(level, holds(r)) end
    for _, r in ipairs(askers) do
      if holds(r) == level then lowest[#lowest + 1] = r else above = math.min(above, holds(r)) end
    end
    -- As many turns at once as change nobody's order.
    local each = math.min(math.floor(free / #lowest), above - level)
    for _, r in ipairs(lowest) do each = math.min(each, r.want) end
    local one = each < 1
    if one then each = 1 end
    table.sort(lowest, function(a, b) return a.turn < b.turn end)
    for _, r in ipairs(lowest) do
      if free < each then break end
      turn = turn + 1
      r.turn, r.grant, r.want, r.dealt = turn, r.grant + each, r.want - each, true
      free = free - each
    end
    local still = {}
    for _, r in ipairs(askers) do if r.want > 0 then still[#still + 1] = r end end
    askers = still
  end
  return turn
end

-- Members that end in a second, after `ended` more have: as it rises at once, as it falls by halves.
local function pace_of(text, ended)
  local pace, count, since = string.match(text or '', '^(%d+) (%d+) (%d+)$')
  pace, count, since = int(pace), int(count) + ended, int(since or t)
  local ms = t - since
  if ms >= 50 then
    local lately = math.floor(count * 1000 / ms)
    pace = (lately > pace or ms >= 1000) and lately or math.floor((pace + lately) / 2)
    count, since = 0, t
  end
  return pace, table.concat({ pace, count, since }, ' ')
end

for i = 4, #ARGV, 5 do
  local key, window, most, out, want = K .. ':' .. ARGV[i], int(ARGV[i + 1]), int(ARGV[i + 2]), int(ARGV[i + 3]), int(ARGV[i + 4])
  local flat = redis.call('HGETALL', key)
  local runs, turn, held = {}, 0, 0
  local own, paced
  for j = 1, #flat, 2 do
    local name = flat[j]
    if name == '#turn' then
      turn = int(flat[j + 1])
    elseif name == '#pace' then
      paced = flat[j + 1]
    else
      local o, g, w, at, till = string.match(flat[j + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
      local r = { name = name, out = int(o), grant = int(g), want = int(w), turn = int(at), till = int(till) }
      if name == me then
        own = r
      elseif r.till <= t then
        redis.call('HDEL', key, name)
      else
        runs[#runs + 1] = r
        held = held + holds(r)
      end
    end
  end
  if not own then
    turn = turn + 1
    own = { name = me, grant = 0, turn = turn }
  end
  local pace = 0
  if most > window then
    pace, paced = pace_of(paced, math.max(0, int(own.out) - out))
    window = math.max(window, math.min(most, math.floor(pace * int(ARGV[3]) / 1000)))
  end
  own.grant = math.min(own.grant, want)
  own.out, own.want, own.till = out, want - own.grant, t + int(ARGV[2])
  local free = window - held - holds(own)
  runs[#runs + 1] = own
  local askers = {}
  for _, r in ipairs(runs) do
    r.had = r.grant
    if r.want > 0 then askers[#askers + 1] = r end
  end
  local turned = deal(askers, free, turn)
  answer[#answer + 1], answer[#answer + 2] = own.grant, pace
  own.out, own.grant, own.dealt = out + own.grant, 0, true
  local left = 0
  for _, r in ipairs(runs) do
    if r == own and holds(r) + r.want == 0 then
      redis.call('HDEL', key, me)
    else
      left = left + 1
      if r.dealt then
        redis.call('HSET', key, r.name, table.concat({ r.out, r.grant, r.want, r.turn, r.till }, ' '))
        if r ~= own and r.had == 0 then redis.call('PUBLISH', 'farm:{' .. r.name .. '}:wake', ARGV[i]) end
      end
    end
  end
  if left == 0 then
    redis.call('DEL', key)
  else
    redis.call('HSET', key, '#turn', turned, unpack(paced and {'#pace', paced} or {}))
    -- The last driver of a realm may die, and nobody come to clear away.
    redis.call('PEXPIRE', key, math.max(60000, int(ARGV[2])))
  end
end
return answer
