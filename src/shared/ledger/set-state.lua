-- Changes the run's state where that is allowed: a cancelled or done run stays so.
--   running <-> paused, running|paused -> stopped -> running (resume), running|paused|stopped -> cancelled, running|paused -> done
-- (the manifest is written, whatever paused the run meanwhile; a stop is told to the user)
-- ARGV  1 new state  2 reason or ''  3 exit code or ''
-- Gives the state before.
local before = run_field('state')
if not before then return 'unknown' end
if before == 'done' or before == 'cancelled' or (ARGV[1] == 'done' and before == 'stopped') then return before end
redis.call('HSET', RUN, 'state', ARGV[1], 'reason', ARGV[2], 'exit', ARGV[3], 'ticked', now())
-- A pause lasts until something is accepted: one that is tried again and comes back is the same.
if ARGV[1] == 'paused' and before ~= 'paused' then
  if run_field('paused_at') ~= run_field('accepted') then redis.call('HSET', RUN, 'paused_at', run_field('accepted'), 'paused_since', now()) end
  redis.call('HSET', RUN, 'paused_reason', ARGV[2])
end
-- What was refused while the run rested is due at once, not after its turn.
if ARGV[1] == 'running' and before ~= 'running' then
  local t = now()
  for _, id in ipairs(redis.call('ZRANGE', K .. ':live', 0, -1)) do
    local g, m = string.match(id, '^(%d+)-(%d+)$')
    if int(redis.call('HGET', group_key(g), m .. '.l')) <= t then redis.call('ZADD', K .. ':live', t, id) end
  end
end
return before
