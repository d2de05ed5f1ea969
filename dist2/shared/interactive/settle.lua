-- A sample is over.
-- ARGV  1 id  2 token  3 outcome
-- Gives 0 where it is somebody else's, or nobody's, by now.
local gate, token = unpack(redis.call('HMGET', sample(ARGV[1]), 'gate', 'token'))
if token ~= ARGV[2] then return 0 end
finish(ARGV[1], gate, ARGV[3])
return 1
