-- Opens the next groups of the plan; those that a committed shard already has are passed over.
-- ARGV  1 epoch  2 number of the first group  3.. triples of task id, place, lane
-- Gives the number of groups taken from the list, or -1 (not the driver, not running, or another place in the plan).
if not drives(ARGV[1]) then return -1 end
local state = run_field('state')
if (state ~= 'running' and not over_by()) or run_field('next') ~= ARGV[2] then return -1 end
local size, clock, t = int(run_field('size')), int(run_field('clock')), now()
local g = int(ARGV[2])
for i = 3, #ARGV, 3 do
  if redis.call('GETBIT', K .. ':closed', g) == 0 then
    redis.call('HSET', group_key(g), 'task', ARGV[i], 'place', ARGV[i + 1], 'left', size, 'done', 0, 'refills', 0)
    if ARGV[i + 2] ~= 'rollout' then redis.call('HSET', group_key(g), 'lane', ARGV[i + 2]) end
    redis.call('ZADD', K .. ':deadlines', clock + int(run_field('slot_wait_ms')), g)
    local due = due_key(ARGV[i + 2])
    for m = 0, size - 1 do redis.call('ZADD', due, t, g .. '-' .. m) end
  end
  g = g + 1
end
redis.call('HSET', RUN, 'next', g)
return g - int(ARGV[2])
