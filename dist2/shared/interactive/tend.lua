-- Whoever asked is there, and waits for these samples.
-- ARGV  1 gate  then ID, …
-- Gives those that are not here: over, or forgotten.
redis.call('SET', K .. ':g:' .. ARGV[1], '1', 'PX', HEARD)
alive_for(K .. ':calls', LIFE)
local missing = {}
for i = 2, #ARGV do
  local call = redis.call('HGET', sample(ARGV[i]), 'call')
  if call then
    for _, key in ipairs({sample(ARGV[i]), K .. ':c:' .. call, K .. ':w:' .. call}) do redis.call('PEXPIRE', key, LIFE) end
  else
    missing[#missing + 1] = ARGV[i]
  end
end
reclaim()
return missing
