-- A shard is in the store: compare and set, then the stream is trimmed to it.
-- ARGV  1 shard number  2 from  3 to  4 link  5 the server on which its boundaries were fixed, or ''  6.. groups that refill degenerate ones of it
-- Gives 'committed' or 'superseded'. What was fixed on another server is a range of a ledger that may be gone.
if not same_server() or (ARGV[5] ~= '' and run_field('server') ~= ARGV[5]) then return 'superseded' end
if run_field('shards') ~= ARGV[1] or int(run_field('committed')) + 1 ~= int(ARGV[2]) or int(ARGV[3]) > int(run_field('closed')) then return 'superseded' end
redis.call('HSET', RUN, 'shards', int(ARGV[1]) + 1, 'committed', ARGV[3], 'link', ARGV[4])
redis.call('HDEL', RUN, 'fixed_to')
if #ARGV > 5 then redis.call('HINCRBY', RUN, 'spares', #ARGV - 5) end
for i = 6, #ARGV do redis.call('ZADD', K .. ':spares', ARGV[i], ARGV[i]) end
redis.call('XTRIM', K .. ':out', 'MINID', (int(ARGV[3]) + 1) .. '-0')
return 'committed'
