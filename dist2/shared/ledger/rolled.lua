-- The episode is over and its record claimed; the verifier's turn comes next. A redelivery resumes here.
-- ARGV  1 group  2 member  3 token  4 rolled text  5 blobs
-- Gives 'rolled', or why not.
local g, m = ARGV[1], ARGV[2]
local why = speaks(g, m, ARGV[3])
if why then
  evidence(g, m, ARGV[3], why, ARGV[4])
  return why
end
local key = group_key(g)
redis.call('HSET', key, m .. '.c', ARGV[4], m .. '.s', 'rolled')
if ARGV[5] ~= '' then redis.call('HSET', key, m .. '.b', ARGV[5]) end
-- This stage killed nobody: what its workers died of was another.
redis.call('HDEL', key, m .. '.ds', m .. '.dn', m .. '.da')
give_back(g, m, 0)
-- The driver queues it; the first of many wakes it.
if redis.call('ZCARD', due_key('verify')) == 1 then redis.call('PUBLISH', K .. ':wake', 'verify') end
return 'rolled'
