-- Forgets a process and all it held.
-- ARGV  1 process
redis.call('HDEL', K, ARGV[1])
return 1
