-- How many calls have samples that wait.
-- ARGV  none
-- Gives that number.
reclaim()
return redis.call('LLEN', K .. ':calls')
