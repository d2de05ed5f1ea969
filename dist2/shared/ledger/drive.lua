-- Takes or renews the driver's lease: one driver a run, its epoch is checked by every script that plans.
-- ARGV  1 owner  2 ttl ms  3 an owner known to be dead, or ''
-- Gives {'yours', epoch} or {'held', owner, ms left}; of a run that is not known {'held', '', '0'}
if not run_field('state') then return {'held', '', '0'} end
local t = steady_clock()
local owner, till = run_field('driver'), int(run_field('driver_until'))
if owner and owner ~= ARGV[1] and owner ~= ARGV[3] and till > t then return {'held', owner, tostring(till - t)} end
if owner ~= ARGV[1] then redis.call('HINCRBY', RUN, 'driver_epoch', 1) end
redis.call('HSET', RUN, 'driver', ARGV[1], 'driver_until', t + int(ARGV[2]))
return {'yours', run_field('driver_epoch')}
