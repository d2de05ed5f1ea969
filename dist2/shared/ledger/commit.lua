-- A shard is in the store: compare and set, then the stream is trimmed to it.
-- ARGV  1 shard number  2 from  3 to  4 link  5 the server on which its boundaries were fixed, or ''
-- Gives 'committed' or 'superseded'. What was fixed on another server is a range of a ledger that may be gone.
if not same_server() or (ARGV[5] ~= '' and run_field('server') ~= ARGV[5]) then return 'superseded' end
if run_field('shards') ~= ARGV[1] or int(run_field('committed')) + 1 ~= int(ARGV[2]) or int(ARGV[3]) > int(run_field('closed')) then return 'superseded' end
redis.call('HSET', RUN, 'shards', int(ARGV[1]) + 1, 'committed', ARGV[3], 'link', ARGV[4])
redis.call('HDEL', RUN, 'fixed_to')
redis.call('XTRIM', K .. ':out', 'MINID', (int(ARGV[3]) + 1) .. '-0')
return 'committed'
