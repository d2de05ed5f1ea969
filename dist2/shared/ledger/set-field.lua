-- Sets one field of the run's hash, also on a full Redis: it is how the run says that it is full.
-- ARGV  1 field  2 value
-- Gives 1 if the field is new, else 0.
return redis.call('HSET', RUN, ARGV[1], ARGV[2])
