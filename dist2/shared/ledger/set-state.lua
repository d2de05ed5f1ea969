-- Changes the run's state where that is allowed: a cancelled or done run stays so.
--   running <-> paused, running|paused -> stopped -> running (resume), running|paused|stopped -> cancelled, running|paused -> done
-- (the manifest is written, whatever paused the run meanwhile; a stop is told to the user)
-- ARGV  1 new state  2 reason or ''  3 exit code or ''
-- Gives the state before.
local before = run_field('state')
if not before then return 'unknown' end
if before == 'done' or before == 'cancelled' or (ARGV[1] == 'done' and before == 'stopped') then return before end
redis.call('HSET', RUN, 'state', ARGV[1], 'reason', ARGV[2], 'exit', ARGV[3], 'ticked', now())
if ARGV[1] == 'paused' and before ~= 'paused' then pause_began() end
-- A run that rests keeps no place but of those at work: its jobs are refused.
if ARGV[1] ~= 'running' then
  local t = now()
  for _, id in ipairs(redis.call('ZRANGE', K .. ':live', 0, -1)) do
    local g, m = string.match(id, '^(%d+)-(%d+)$')
    if int(redis.call('HGET', group_key(g), m .. '.l')) <= t then give_back(g, m, 0) end
  end
end
return before
