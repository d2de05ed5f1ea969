-- How many calls have samples that wait.
reclaim()
return redis.call('LLEN', K .. ':calls')
