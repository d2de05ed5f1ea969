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
local pause = bounded(O.pause, O.longest)
if S.trial == ME .. '|' .. token then
  -- The pause was long enough, or this call says nothing about it and the next one is to tell.
  S.trial = (pause > 0 or S.pause > T or O.outcome == 'given_back') and '?' or ''
  redis.call('HSET', U, 'trial', S.trial)
end
if pause > 0 then
  if S.pause <= T then events[#events + 1] = { 'rate_limited', why } end
  count('rate_limited', 1)
  if T + pause > S.pause then
    S.pause, S.pause_why = T + pause, why
    S.trial = S.trial == '' and '?' or S.trial
    redis.call('HSET', U, 'pause', S.pause, 'pause_why', why, 'trial', S.trial)
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

local keys = {}
for i = 3, #ARGV, 4 do keys[#keys + 1] = ARGV[i] end
local of = states(keys)
local again, due, gone, keeps = {}, {}, {}, {}
for i, key in ipairs(keys) do
  local s = read_state(of[i])
  if s.token == token then
    local at = 4 * i - 1
    local what, value, number = ARGV[at + 1], ARGV[at + 2], int(ARGV[at + 3])
    if what == 'a' and any_alive(s.ps) then
      local n, wt, cap = string.match(value, '^(%S+) (%S+) (%S+)$')
      s.n, s.wt, s.cap = bounded(n, 1000), bounded(wt, DAY), bounded(cap, 1000)
      wait_again(again, due, key, s, bounded(number, O.longest))
    else
      gone[#gone + 1] = key
      if what == 'l' then
        -- To the run it makes a difference: an upstream that is down is waited for.
        local down = S.breaker == 'open'
        post(s.ps, key, down and 'o' or 'u', down and S.why or value)
      elseif what ~= 'a' then
        if what == 'v' and number == 1 and s.ttl > 0 then keeps[#keeps + 1] = { key, value, s.ttl } end
        post(s.ps, key, what, value, ME)
      end
    end
  end
end
put_waiting(again, due)
drop(gone)
keep(keeps)
local code, detail = shut()
if code then drain(code, detail) end
purge()
return reply()
