-- Something begins to work beside a member that was alone in its worker: what kills the worker now need not be that member.
-- ARGV  1 group  2 member  3 token
-- Gives 1, or 0 if the token does not hold the member any more.
if redis.call('HGET', group_key(ARGV[1]), ARGV[2] .. '.t') ~= ARGV[3] then return 0 end
redis.call('HDEL', group_key(ARGV[1]), ARGV[2] .. '.i')
return 1
