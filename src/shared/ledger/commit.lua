-- A shard is in the store: compare and set, then the stream is trimmed to it.
-- ARGV  1 shard number  2 from  3 to  4 link  5 the server on which its boundaries were fixed, or ''  6.. groups that refill degenerate ones of it
-- Gives 'committed' or 'superseded'. What was fixed on another server is a range of a ledger that may be gone.
if not same_server() or (ARGV[5] ~= '' and run_field('server') ~= ARGV[5]) then return 'superseded' end
return commit_shard(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV, 6) and 'committed' or 'superseded'
