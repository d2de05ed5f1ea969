-- Tells what a process holds, and asks for leave to start one box more. Those who wait get it in the order in which they
-- began to wait; who has not asked again for a while waits no longer.
-- ARGV  1 process, 2 boxes starting, 3 memory held (MB), 4 lease (ms), 5 starts at once, 6 memory budget (MB),
--       7 memory wanted (MB, 0: nothing), 8 how long a wait is good for (ms)
-- Gives {1 granted, 1 somebody else waits for memory}
local now = now_ms()
local me, starting, held = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local most, budget, want = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local mine = parse(redis.call('HGET', K, me) or '')
local since = (mine[5] or 0) >= now and mine[4] or now
local all_starting, all_held, before, scarce = starting, held, false, 0

local holds = redis.call('HGETALL', K)
for i = 1, #holds, 2 do
  local other = parse(holds[i + 1])
  if holds[i] == me then
    -- as told
  elseif other[1] < now then
    redis.call('HDEL', K, holds[i])
  else
    all_starting, all_held = all_starting + other[2], all_held + other[3]
    if other[5] >= now then
      if other[4] < since or (other[4] == since and holds[i] < me) then before = true end
      if other[6] > scarce then scarce = other[6] end
    end
  end
end

local granted = want > 0 and not before and all_starting < most and all_held + want <= budget
local waits = want > 0 and not granted
local pressed = scarce > 0 and all_held + scarce > budget
if granted then starting, held = starting + 1, held + want end
redis.call('HSET', K, me, table.concat({
  whole(now + tonumber(ARGV[4])), whole(starting), whole(held),
  waits and whole(since) or '0', waits and whole(now + tonumber(ARGV[8])) or '0', whole(waits and want or 0),
}, ' '))
redis.call('PEXPIRE', K, 3600000)
return {granted and 1 or 0, pressed and 1 or 0}
