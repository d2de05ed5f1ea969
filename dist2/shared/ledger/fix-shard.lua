-- Fixes the boundaries of the next shard before a byte of it is made, so that two collectors make the same one.
-- ARGV  1 most groups in a shard  2 at least this many, unless final  3 final (0 | 1)
-- Gives {number, from, to, link, server} or {} if there is nothing to do; {'changed'} if Redis is another server and its ledger
-- was not compared with the store.
if not same_server() then return {'changed'} end
local committed, closed = int(run_field('committed')), int(run_field('closed'))
local to = int(run_field('fixed_to'))
if to <= committed then
  local n = closed - committed
  if n == 0 or (n < int(ARGV[2]) and ARGV[3] == '0') then return {} end
  to = committed + math.min(n, int(ARGV[1]))
  redis.call('HSET', RUN, 'fixed_to', to)
end
return {run_field('shards'), tostring(committed + 1), tostring(to), run_field('link') or '', run_field('server') or ''}
