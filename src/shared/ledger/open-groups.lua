-- Opens the next groups of the plan; those that a committed shard already has are passed over.
-- ARGV  1 epoch  2 number of the first group  3.. quadruples of task id, place, lane, number of its spare or ''
-- Gives the number of groups taken from the list, or -1 (not the driver, not running, or another place in the plan).
if not drives(ARGV[1]) then return -1 end
local state = run_field('state')
if (state ~= 'running' and not over_by()) or run_field('next') ~= ARGV[2] then return -1 end
local g, groups = int(ARGV[2]), {}
for i = 3, #ARGV, 4 do
  groups[#groups + 1] = { g, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3] }
  g = g + 1
end
open_all(groups)
redis.call('HSET', RUN, 'next', g)
return #groups
