-- Takes over what committed shards say, into a ledger that was opened empty: groups in committed shards win.
-- ARGV  shards, committed (seq), link, accepted, completed, no_result, then group numbers
-- Gives 1, or 0 if the ledger already has closed groups of its own.
if int(run_field('closed')) > int(ARGV[2]) or int(run_field('shards')) > int(ARGV[1]) then return 0 end
redis.call('HSET', RUN, 'shards', ARGV[1], 'committed', ARGV[2], 'closed', ARGV[2], 'link', ARGV[3], 'accepted', ARGV[4], 'completed', ARGV[5], 'no_result', ARGV[6])
for i = 7, #ARGV do redis.call('SETBIT', K .. ':closed', ARGV[i], 1) end
return 1
