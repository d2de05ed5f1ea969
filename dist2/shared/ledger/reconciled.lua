-- The ledger on this server was compared with the store, and follows it: a run that was paused for that goes on.
-- ARGV  1 id of the server that was compared
-- Gives 1, or 0 if Redis is another one by now.
if server_id() ~= ARGV[1] then return 0 end
redis.call('HSET', RUN, 'server', ARGV[1])
if run_field('comparing') and run_field('state') == 'paused' then redis.call('HSET', RUN, 'state', 'running', 'reason', '', 'ticked', now()) end
redis.call('HDEL', RUN, 'comparing')
return 1
