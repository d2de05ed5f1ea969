-- A process lives: its lease is renewed, calls of the dead are given back, and what it has waited for long is looked
-- up, since a message may have been lost.
-- ARGV  1 options (JSON; `mine` its calls, `dead` processes known to be gone)  2.. keys that it waits for
-- Gives a code for each key, and its value; the other processes that hold permits; and those of this process's calls
-- that have been out for `abandon` ms, and that nobody waits for any more
here()
redis.call('ZREMRANGEBYSCORE', K .. ':procs', '-inf', T - 600000)
local mine, dead = {}, {}
for _, token in ipairs(O.mine) do mine[token] = true end
for _, proc in ipairs(O.dead) do
  dead[proc] = true
  redis.call('ZREM', K .. ':procs', proc)
end
local out, holders = {}, {}
for _, name in ipairs({ ':p', ':a' }) do
  for _, permit in ipairs(redis.call('ZRANGE', U .. name, 0, -1)) do
    local proc, token = string.match(permit, '^(.+)|(.+)$')
    if proc == ME then
      -- Taken, and the answer to it never arrived.
      if not mine[token] and int(redis.call('LINDEX', U .. ':k:' .. token, 0)) + O.lost < T then
        redis.call('ZREM', U .. name, permit)
        release(token)
      end
    elseif dead[proc] then
      redis.call('ZREM', U .. name, permit)
      release(token)
    else
      -- Its call may still be under way there: the permit stays until its own end.
      if not is_alive(proc) then release(token) end
      holders[proc] = true
    end
  end
end
local keys = {}
for i = 2, #ARGV do keys[#keys + 1] = ARGV[i] end
local of, listed, calls = states(keys), all_of('ZMSCORE', U .. ':w', keys), {}
local status, again, due, missing = {}, {}, {}, {}
for i, key in ipairs(keys) do
  if of[i] then
    local s = read_state(of[i])
    if not has(s.ps, ME) then
      s.ps = s.ps .. ME .. ' '
      status[#status + 1] = key
      status[#status + 1] = write_state(s.token, s)
    end
    if s.token == WAITING then
      if not listed[i] then wait_again(again, due, key, s, 0) end
    else
      local token = s.token or ''
      if calls[token] == nil then calls[token] = redis.call('EXISTS', U .. ':k:' .. token) == 1 end
      if not calls[token] then wait_again(again, due, key, s, 0) end
    end
    out[i] = { 'w' }
  else
    missing[#missing + 1] = i
  end
end
bulk('HSET', U .. ':s', status)
put_waiting(again, due)
local lost = {}
for n, i in ipairs(missing) do lost[n] = keys[i] end
for n, value in ipairs(recall(lost)) do out[missing[n]] = value and { 'v', value } or { 'n' } end
if #keys > 0 then stay() end
-- A call that hangs must not keep its permit from others when its answer is for nobody.
local abandoned = {}
for _, token in ipairs(O.mine) do
  local held = redis.call('LRANGE', U .. ':k:' .. token, 0, -1)
  local since = int(table.remove(held, 1))
  if since > 0 and since + O.abandon < T then
    local wanted = false
    for _, text in ipairs(states(held)) do wanted = wanted or (text and any_alive(read_state(text).ps)) end
    if not wanted then abandoned[#abandoned + 1] = token end
  end
end
local procs = {}
for proc in pairs(holders) do procs[#procs + 1] = proc end
purge()
local answer = reply(out, nil, procs)
answer[8] = abandoned
return answer
