-- Fixes with what a run is graded, unless that is fixed already. Nothing is left of a run that is not there.
-- ARGV  1 versions, JSON
-- Gives the fixed ones, or false where there is no such run.
if redis.call('HEXISTS', RUN, 'state') == 0 then return false end
redis.call('HSETNX', RUN, 'versions', ARGV[1])
return redis.call('HGET', RUN, 'versions')
