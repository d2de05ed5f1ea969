-- The episode is over and its record claimed; the verifier's turn comes next. A redelivery resumes here.
-- ARGV  1 group  2 member  3 token  4 rolled text  5 blobs  6 ms until the member is due again if nobody begins it
-- Gives 'rolled' and the number of the next begin, or why not.
local g, m = ARGV[1], ARGV[2]
local why = speaks(g, m, ARGV[3])
if why then
  evidence(g, m, ARGV[3], why, ARGV[4])
  return {why, '0'}
end
local key = group_key(g)
redis.call('HSET', key, m .. '.c', ARGV[4], m .. '.s', 'rolled')
if ARGV[5] ~= '' then redis.call('HSET', key, m .. '.b', ARGV[5]) end
give_back(g, m, int(ARGV[6]))
return {'rolled', tostring(int(redis.call('HGET', key, m .. '.n')) + 1)}
