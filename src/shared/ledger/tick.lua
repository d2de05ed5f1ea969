-- Advances the run's own clock, and closes the groups whose deadline it reaches. Nobody ticking, or a state other than
-- running, means no time: a night's pause kills no group.
-- ARGV  1 epoch  2 most ms that one tick may add
-- Gives {state, clock, closed groups, next group, open members, begun members, accepted members}, or {'lost'} if not the driver.
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
return {state, run_field('clock'), run_field('closed'), run_field('next'), tostring(redis.call('ZCARD', K .. ':live')),
  tostring(redis.call('ZCARD', K .. ':flight')), run_field('accepted')}
