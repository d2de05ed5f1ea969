-- Opens a run's ledger, once; later calls find it.
-- ARGV  1.. pairs of field, value for :run (state, size, groups, close, at_least, deadline_ms, slot_wait_ms, refill, max_attempts, incarnation, document, plan, settings, …)
-- Gives 1 if it was opened now, 0 if it was there.
-- By its state: a late answer to a run that Redis has forgotten leaves a field of its own there.
if run_field('state') then return 0 end
redis.call('HSET', RUN, unpack(ARGV))
redis.call('HSET', RUN, 'state', 'running', 'clock', 0, 'ticked', now(), 'created', now(), 'next', 0, 'closed', 0, 'committed', 0, 'shards', 0,
  'accepted', 0, 'completed', 0, 'no_result', 0, 'late', 0, 'driver_epoch', 0, 'server', server_id(), 'version', VERSION)
return 1
