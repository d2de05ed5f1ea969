-- Closes open groups of a run that is over, some at a time: it was cancelled, or its verifier refuses it (exit 2).
-- ARGV  1 limit
-- Gives how many were closed.
local ended = over_by()
if not ended then return 0 end
local groups = redis.call('ZRANGE', K .. ':deadlines', 0, int(ARGV[1]) - 1)
for _, g in ipairs(groups) do close_group(g, 'cancelled', ended) end
return #groups
