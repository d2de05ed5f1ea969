-- Nobody waits for these samples any more.
-- ARGV  1 call  2 '1': nor for any other of the call  then ID, …
-- Gives 1.
local call = ARGV[1]
local line = K .. ':w:' .. call
for i = 3, #ARGV do
  redis.call('LREM', line, 0, ARGV[i])
  drop(ARGV[i])
end
if ARGV[2] == '1' then redis.call('DEL', line, K .. ':c:' .. call) end
if redis.call('EXISTS', line) == 0 then redis.call('LREM', K .. ':calls', 0, call) end
return 1
