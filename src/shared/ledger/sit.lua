-- A command begins to drive the run: its rate is counted from here.
-- ARGV  none
-- Gives 1.
redis.call('HSET', RUN, 'sitting_accepted', int(run_field('accepted')), 'sitting_since', now(), 'draining', '0')
return 1
