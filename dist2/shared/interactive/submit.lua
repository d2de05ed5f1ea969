-- Samples of a call that are to be scored.
-- ARGV  1 call  2 gate  3 ms that are left  4 what they share ('' where it was sent before)  then ID, content, …
-- Gives 0 where what they share is not known (any more): nothing was taken.
local call, gate = ARGV[1], ARGV[2]
local shared = K .. ':c:' .. call
if ARGV[4] ~= '' then
  redis.call('SET', shared, ARGV[4], 'PX', LIFE)
elseif redis.call('PEXPIRE', shared, LIFE) == 0 then
  return 0
end
redis.call('SET', K .. ':g:' .. gate, '1', 'PX', HEARD)
for i = 5, #ARGV, 2 do
  local id = ARGV[i]
  if redis.call('EXISTS', sample(id)) == 0 then
    redis.call('HSET', sample(id), 'call', call, 'gate', gate, 'content', ARGV[i + 1], 'until', T + tonumber(ARGV[3]))
    redis.call('PEXPIRE', sample(id), LIFE)
    line_up(id, call, false)
  end
end
redis.call('PUBLISH', K .. ':bell', '1')
return 1
