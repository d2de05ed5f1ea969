-- Opens the next groups of the plan; those that a committed shard already has are passed over.
-- ARGV  1 epoch  2 number of the first group  3.. triples of task id, place, lane
-- Gives the number of groups taken from the list, or -1 (not the driver, not running, or another place in the plan).
if not drives(ARGV[1]) then return -1 end
local state = run_field('state')
if (state ~= 'running' and not over_by()) or run_field('next') ~= ARGV[2] then return -1 end
local size, clock, t = int(run_field('size')), int(run_field('clock')), now()
local g, due, deadlines = int(ARGV[2]), {}, {}
for i = 3, #ARGV, 3 do
  if redis.call('GETBIT', K .. ':closed', g) == 0 then
    local task, place, lane = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    redis.call('HSET', group_key(g), 'task', task, 'place', place, 'left', size, 'done', 0, 'refills', 0, unpack(lane ~= 'rollout' and {'lane', lane} or {}))
    deadlines[#deadlines + 1], deadlines[#deadlines + 2] = clock + int(run_field('slot_wait_ms')), g
    local list = due[lane] or {}
    due[lane] = list
    for m = 0, size - 1 do list[#list + 1], list[#list + 2] = t, g .. '-' .. m end
  end
  g = g + 1
end
call_all('ZADD', K .. ':deadlines', deadlines)
for lane, list in pairs(due) do call_all('ZADD', due_key(lane), list) end
redis.call('HSET', RUN, 'next', g)
return g - int(ARGV[2])
