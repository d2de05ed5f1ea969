-- The store has a shard more than the ledger, and in it the very groups that the ledger has next: somebody died between its
-- put and its commit, or Redis has lost no more than the commit. What closed after it stays as it is.
-- ARGV  1 shard number  2 from  3 to  4 link  5 the server whose groups were compared  6.. groups that refill degenerate ones of it
-- Gives 1, or 0 if Redis is another one by now, or the shard is not the next.
if server_id() ~= ARGV[5] then return 0 end
return commit_shard(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV, 6) and 1 or 0
