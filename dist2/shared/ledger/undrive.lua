-- Gives up the driver's lease, if it is still ours.
-- ARGV  1 owner
if run_field('driver') == ARGV[1] then redis.call('HDEL', RUN, 'driver', 'driver_until') end
return 1
