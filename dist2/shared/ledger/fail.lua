-- An attempt was lost to the infrastructure. Charged ones spend the member's attempts and the group's refills; a
-- drain, a stop or a lost Redis is not charged. What cannot be tried again becomes the member's outcome.
-- ARGV  1 group  2 member  3 token  4 cause  5 detail as JSON text  6 charge (0 | 1)  7 delay ms  8 signature or ''
-- Gives 'retry', 'no_result', or why it was not counted.
local g, m = ARGV[1], ARGV[2]
local key = group_key(g)
local why = speaks(g, m, ARGV[3])
if why then
  evidence(g, m, ARGV[3], why, ARGV[4])
  return why
end
if ARGV[6] == '0' then
  give_back(g, m, int(ARGV[7]))
  return 'retry'
end
if ARGV[8] ~= '' then redis.call('HSET', key, m .. '.x', ARGV[8]) end
local attempts = redis.call('HINCRBY', key, m .. '.a', 1)
if attempts < int(run_field('max_attempts')) and int(redis.call('HGET', key, 'refills')) < int(run_field('refill')) then
  redis.call('HINCRBY', key, 'refills', 1)
  give_back(g, m, int(ARGV[7]))
  return 'retry'
end
settle(g, m, 'no_result', '{"member":' .. m .. ',"status":"no_result","cause":"' .. ARGV[4] .. '","detail":' .. ARGV[5] .. ',"attempts":' .. attempts .. '}', '', ARGV[4])
return 'no_result'
