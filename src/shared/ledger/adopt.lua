-- Takes over what committed shards say, where the store knows of more than the ledger: groups in committed shards win. A
-- ledger that is behind has lost writes; what it thought open or closed beyond the shards is begun anew.
-- ARGV  1 shards  2 committed (seq)  3 link  4 accepted  5 completed  6 no_result  7 number of causes, then cause, count, …, then the number
--       of groups that refill degenerate ones, and these, then the closed groups' numbers
-- Gives 1, or 0 if the ledger knows as much as the store.
if int(run_field('shards')) >= int(ARGV[1]) then return 0 end
for _, g in ipairs(redis.call('ZRANGE', K .. ':deadlines', 0, -1)) do redis.call('DEL', group_key(g)) end
redis.call('DEL', K .. ':live', due_key('rollout'), due_key('light'), due_key('verify'), K .. ':flight', K .. ':deadlines', K .. ':out', K .. ':closed', K .. ':causes', K .. ':spares')
redis.call('HDEL', RUN, 'fixed_to', 'out:rollout', 'out:light', 'out:verify')
redis.call('HSET', RUN, 'next', 0, 'shards', ARGV[1], 'committed', ARGV[2], 'closed', ARGV[2], 'link', ARGV[3], 'accepted', ARGV[4], 'completed', ARGV[5], 'no_result', ARGV[6])
local at = 8
for _ = 1, int(ARGV[7]) do
  redis.call('HSET', K .. ':causes', ARGV[at], ARGV[at + 1])
  at = at + 2
end
local spares = at + int(ARGV[at])
for i = spares + 1, #ARGV do redis.call('SETBIT', K .. ':closed', ARGV[i], 1) end
redis.call('HSET', RUN, 'spares', ARGV[at])
for i = at + 1, spares do
  if redis.call('GETBIT', K .. ':closed', ARGV[i]) == 0 then redis.call('ZADD', K .. ':spares', ARGV[i], ARGV[i]) end
end
-- XADD refuses ids that are not larger than the last: the stream goes on after the shards.
redis.call('XADD', K .. ':out', ARGV[2] .. '-0', 'adopted', '1')
redis.call('XTRIM', K .. ':out', 'MINID', (int(ARGV[2]) + 1) .. '-0')
return 1
