-- Closes open groups of a cancelled run, some at a time.
-- ARGV  1 limit
-- Gives how many were closed.
if run_field('state') ~= 'cancelled' then return 0 end
local groups = redis.call('ZRANGE', K .. ':deadlines', 0, int(ARGV[1]) - 1)
for _, g in ipairs(groups) do close_group(g, 'cancelled', 'cancelled') end
return #groups
