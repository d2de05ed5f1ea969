-- Advances the run's own clock, and closes the groups whose deadline it reaches. Nobody ticking, or a state other than
-- running, means no time: a night's pause kills no group.
-- ARGV  1 epoch  2 most ms that one tick may add  3 look whether the server is another one (0 | 1)
-- Gives {state, clock, closed groups, next group, begun members, accepted members, groups called for by degenerate ones,
-- those of them that are not open yet, then the counts of the lanes},
-- or {'lost'} if not the driver, or {'changed'} if Redis is another server than the one whose ledger was compared with the
-- store: then a run at work is paused until that is done (reconciled).
if ARGV[3] == '1' and run_field('state') and not same_server() then
  if run_field('state') == 'running' then
    redis.call('HSET', RUN, 'state', 'paused', 'reason', 'Redis came back as another server: its ledger is compared with the store', 'comparing', 1)
    pause_began()
  end
  return {'changed'}
end
if not drives(ARGV[1]) then return {'lost'} end
local t, state = steady_clock(), run_field('state')
if state == 'running' then
  local clock = int(run_field('clock')) + math.max(0, math.min(t - int(run_field('ticked')), int(ARGV[2])))
  redis.call('HSET', RUN, 'clock', clock)
  for _, g in ipairs(redis.call('ZRANGEBYSCORE', K .. ':deadlines', '-inf', clock, 'LIMIT', 0, 100)) do
    close_group(g, 'deadline', redis.call('HGET', group_key(g), 'began') and 'group_deadline' or 'not_started')
  end
end
redis.call('HSET', RUN, 'ticked', t)
local spares = run_field('spares') or '0'
local waiting = spares == '0' and 0 or redis.call('ZCARD', K .. ':spares')
return lane_counts({state, run_field('clock'), run_field('closed'), run_field('next'), tostring(redis.call('ZCARD', K .. ':flight')), run_field('accepted'), spares, tostring(waiting)})
