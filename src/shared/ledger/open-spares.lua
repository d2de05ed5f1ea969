-- Opens groups that refill degenerate ones, each once: only those that wait for it.
-- ARGV  1 epoch  2.. quintuples of group, task id, place, lane, number of its own spare or ''
-- Gives the number of groups opened, or -1 (not the driver, or not running).
if not drives(ARGV[1]) or (run_field('state') ~= 'running' and not over_by()) then return -1 end
local groups = {}
for i = 2, #ARGV, 5 do
  if redis.call('ZREM', K .. ':spares', ARGV[i]) == 1 then
    groups[#groups + 1] = { ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], ARGV[i + 4] }
  end
end
open_all(groups)
return #groups
