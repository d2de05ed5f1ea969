-- Forgets a process and all it held.
-- ARGV  1 process
-- Gives 1.
redis.call('HDEL', K, ARGV[1])
return 1
