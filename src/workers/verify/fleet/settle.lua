-- Calls are over: their permits come back or go to the calls that have begun in their place, the breaker and what was
-- learned of the upstream change, each of their flights is answered or waits again. Only the holder of a flight's
-- token may speak for it.
-- ARGV  1 options (JSON; `settled`: the calls)  2.. of each call what it as a whole said  then, call by call, quadruples
--       of key, code, value, number:
--       a  ask again after number ms; value is "tries waited cap"
--       l  lost to the infrastructure for the last time
--       others: the answer; 1 where it may be kept
-- Gives what every script here answers (calls.lua), and nothing else.
here()

-- `token` holds the flights, `permit` is what the call went out with: a part of a call that hung has its own. `last`:
-- nothing of the call is out any more.
local function conclude(c, why)
  local mine = ME .. '|' .. c.permit
  redis.call('ZREM', U .. ':p', mine)
  if c.ahead then redis.call('ZREM', U .. ':a', mine) end
  if c.permit ~= c.token then redis.call('DEL', U .. ':k:' .. c.permit) end
  if c.last then redis.call('DEL', U .. ':k:' .. c.token) end
  if c.heir then
    local heir = ME .. '|' .. c.heir
    redis.call('ZREM', U .. ':a', heir)
    redis.call('ZADD', U .. ':p', T + O.permit, heir)
    charge(c.items)
  end
  if S.breaker == 'half' and S.probe == mine then
    if c.outcome == 'infra' then turn('open', why) elseif c.outcome ~= 'given_back' then turn('closed', '') end
  elseif S.breaker == 'closed' and c.gen == S.gen then
    if c.outcome == 'infra' then
      S.failures = S.failures + 1
      redis.call('HSET', U, 'failures', S.failures, 'why', why)
      if S.failures >= O.threshold then turn('open', why) end
    elseif c.outcome == 'ok' and S.failures > 0 then
      S.failures = 0
      redis.call('HSET', U, 'failures', 0, 'why', '')
    end
  end
  if c.outcome == 'infra' then count('failures', 1) end
  local pause = bounded(c.pause, O.longest)
  if S.trial == mine then
    -- The pause was long enough, or this call says nothing about it and the next one is to tell.
    S.trial = (pause > 0 or S.pause > T or c.outcome == 'given_back') and '?' or ''
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
  if c.outcome == 'refused' then
    if S.refused <= T then events[#events + 1] = { 'refused', why } end
    S.refused, S.refused_why = T + O.refusal, why
    redis.call('HSET', U, 'refused', S.refused, 'refused_why', why)
  elseif c.outcome == 'ok' and S.refused > 0 then
    redis.call('HDEL', U, 'refused', 'refused_why')
    S.refused = 0
  end
  if c.halved > 0 and c.halved < S.batch then
    S.batch = c.halved
    redis.call('HSET', U, 'batch', c.halved, 'batch_till', T + O.memory)
    events[#events + 1] = { 'batch', tostring(c.halved) }
  end
  if c.restored then
    S.batch = O.batch
    redis.call('HDEL', U, 'batch', 'batch_till')
  end
  if c.single and not S.single then
    S.single = true
    redis.call('HSET', U, 'single_till', T + O.memory)
    events[#events + 1] = { 'single', why }
  end
end

out = nil
for i, c in ipairs(O.settled) do conclude(c, ARGV[1 + i]) end

local keys, holder, from = {}, {}, #O.settled + 2
for _, c in ipairs(O.settled) do
  for _ = 1, c.n do
    keys[#keys + 1] = ARGV[from + 4 * #keys]
    holder[#keys] = c.token
  end
end
local of = states(keys)
local again, due, gone, keeps = {}, {}, {}, {}
for i, key in ipairs(keys) do
  local s = read_state(of[i])
  if s.token == holder[i] then
    local at = from + 4 * (i - 1)
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
-- What others have taken ahead is not to go out now; what this process has, it gives back by itself.
if code or S.pause > T or S.breaker ~= 'closed' then
  local told = {}
  for _, permit in ipairs(redis.call('ZRANGE', U .. ':a', 0, -1)) do
    local proc = string.match(permit, '^(.+)|')
    if proc ~= ME and not told[proc] then post(' ' .. proc .. ' ', string.rep('-', 43), 'r', '') end
    told[proc] = true
  end
end
purge()
return reply()
