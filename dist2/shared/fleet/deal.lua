-- A run says what it has in the window of each lane and what it would put in; the free places are dealt. Each turn goes
-- to the asking run with the greatest deficit (who holds least), among equals to the one whose last turn is longest ago,
-- so that equal runs hold equal shares, however long their members take and however many they have; a place that its
-- fair owner does not want is anybody's. What is dealt to others waits for them as a grant, and they are woken.
-- ARGV  1 run  2 lease ms  3.. quadruples of lane, places in its window, members that the run has in it, members that it would put in
-- Gives one number a lane: places that the run may fill now, beyond what it has in.
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

for i = 3, #ARGV, 4 do
  local key, window, out, want = K .. ':' .. ARGV[i], int(ARGV[i + 1]), int(ARGV[i + 2]), int(ARGV[i + 3])
  local flat = redis.call('HGETALL', key)
  local runs, turn, free = {}, 0, window
  local own
  for j = 1, #flat, 2 do
    local name = flat[j]
    if name == '#turn' then
      turn = int(flat[j + 1])
    else
      local o, g, w, at, till = string.match(flat[j + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
      local r = { name = name, out = int(o), grant = int(g), want = int(w), turn = int(at), till = int(till) }
      if name == me then
        own = r
      elseif r.till <= t then
        redis.call('HDEL', key, name)
      else
        runs[#runs + 1] = r
        free = free - holds(r)
      end
    end
  end
  if not own then
    turn = turn + 1
    own = { name = me, grant = 0, turn = turn }
  end
  own.grant = math.min(own.grant, want)
  own.out, own.want, own.till = out, want - own.grant, t + int(ARGV[2])
  free = free - holds(own)
  runs[#runs + 1] = own
  local askers = {}
  for _, r in ipairs(runs) do
    r.had = r.grant
    if r.want > 0 then askers[#askers + 1] = r end
  end
  local turned = deal(askers, free, turn)
  answer[#answer + 1] = own.grant
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
    redis.call('HSET', key, '#turn', turned)
    -- The last driver of a realm may die, and nobody come to clear away.
    redis.call('PEXPIRE', key, math.max(60000, int(ARGV[2])))
  end
end
return answer
