-- A call is over: its permit comes back, the breaker and what was learned of the upstream change, each of its flights
-- is answered or waits again. Only the holder of a flight's token may speak for it.
-- ARGV  1 options (JSON)  2 what the call as a whole said  3.. quadruples of key, code, value, number:
--       a  ask again after number ms; value is "tries waited cap"
--       l  lost to the infrastructure for the last time
--       others: the answer; 1 where it may be kept
here()
local token, why = O.settled, ARGV[2]
redis.call('ZREM', U .. ':p', ME .. '|' .. token)
redis.call('DEL', U .. ':k:' .. token)

if S.breaker == 'half' and S.probe == ME .. '|' .. token then
  if O.outcome == 'infra' then turn('open', why) elseif O.outcome ~= 'given_back' then turn('closed', '') end
elseif S.breaker == 'closed' and O.gen == S.gen then
  if O.outcome == 'infra' then
    S.failures = S.failures + 1
    redis.call('HSET', U, 'failures', S.failures, 'why', why)
    if S.failures >= O.threshold then turn('open', why) end
  elseif O.outcome == 'ok' and S.failures > 0 then
    S.failures = 0
    redis.call('HSET', U, 'failures', 0, 'why', '')
  end
end
if O.outcome == 'infra' then count('failures', 1) end
if O.pause > 0 then
  if S.pause <= T then events[#events + 1] = { 'rate_limited', why } end
  count('rate_limited', 1)
  if T + O.pause > S.pause then
    S.pause, S.pause_why = T + O.pause, why
    redis.call('HSET', U, 'pause', S.pause, 'pause_why', why)
  end
end
if O.outcome == 'refused' then
  if S.refused <= T then events[#events + 1] = { 'refused', why } end
  S.refused, S.refused_why = T + O.refusal, why
  redis.call('HSET', U, 'refused', S.refused, 'refused_why', why)
elseif O.outcome == 'ok' and S.refused > 0 then
  redis.call('HDEL', U, 'refused', 'refused_why')
  S.refused = 0
end
if O.halved > 0 and O.halved < S.batch then
  S.batch = O.halved
  redis.call('HSET', U, 'batch', O.halved, 'batch_till', T + O.memory)
  events[#events + 1] = { 'batch', tostring(O.halved) }
end
if O.restored then
  S.batch = O.batch
  redis.call('HDEL', U, 'batch', 'batch_till')
end
if O.single and not S.single then
  S.single = true
  redis.call('HSET', U, 'single_till', T + O.memory)
  events[#events + 1] = { 'single', why }
end

for i = 3, #ARGV, 4 do
  local key, code, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local f = redis.call('HMGET', flight(key), 't', 'ps', 'ttl')
  if f[1] == token then
    if code == 'a' then
      local n, wt, cap = string.match(value, '^(%d+) (%d+) (%d+)$')
      if any_alive(f[2]) then
        redis.call('HSET', flight(key), 'n', n, 'wt', wt, 'cap', cap)
        wait_again(key, int(ARGV[i + 3]))
      else
        drop(key)
      end
    elseif code == 'l' then
      -- To the run it makes a difference: an upstream that is down is waited for.
      if S.breaker == 'open' then post(f[2], key, 'o', S.why) else post(f[2], key, 'u', value) end
      drop(key)
    else
      if code == 'v' and ARGV[i + 3] == '1' and int(f[3]) > 0 then keep(key, value, int(f[3])) end
      post(f[2], key, code, value, ME)
      redis.call('DEL', flight(key))
    end
  end
end
enter()
local code, detail = shut()
if code then drain(code, detail) end
purge()
return reply()
