-- A process lives: its lease is renewed, calls of the dead are given back, and what it has waited for long is looked
-- up, since a message may have been lost.
-- ARGV  1 options (JSON; `mine` its calls, `dead` processes known to be gone)  2.. keys that it waits for
-- Gives {code, value} for each key, then {'p', PROC} for each other process that holds a permit
here()
redis.call('ZREMRANGEBYSCORE', K .. ':procs', '-inf', T - 600000)
local mine, dead = {}, {}
for _, token in ipairs(O.mine) do mine[token] = true end
for _, proc in ipairs(O.dead) do
  dead[proc] = true
  redis.call('ZREM', K .. ':procs', proc)
end
local out, holders = {}, {}
for _, permit in ipairs(redis.call('ZRANGE', U .. ':p', 0, -1)) do
  local proc, token = string.match(permit, '^(.+)|(.+)$')
  if proc == ME then
    -- Taken, and the answer to it never arrived.
    if not mine[token] and int(redis.call('LINDEX', U .. ':k:' .. token, 0)) + O.lost < T then
      redis.call('ZREM', U .. ':p', permit)
      release(token)
    end
  elseif dead[proc] then
    redis.call('ZREM', U .. ':p', permit)
    release(token)
  else
    -- Its call may still be under way there: the permit stays until its own end.
    if not is_alive(proc) then release(token) end
    holders[proc] = true
  end
end
for i = 2, #ARGV do
  local key = ARGV[i]
  local f = redis.call('HMGET', flight(key), 'ps', 's', 't')
  if f[1] then
    if not string.find(f[1], ' ' .. ME .. ' ', 1, true) then redis.call('HSET', flight(key), 'ps', f[1] .. ME .. ' ') end
    redis.call('PEXPIRE', flight(key), O.flight)
    if f[2] == 't' and redis.call('EXISTS', U .. ':k:' .. f[3]) == 0 then wait_again(key, 0) end
    if f[2] == 'w' then redis.call('ZADD', U .. ':w', 'NX', T, key) end
    out[#out + 1] = { 'w', '' }
  else
    local value = recall(key)
    out[#out + 1] = value and { 'v', value } or { 'n', '' }
  end
end
for proc in pairs(holders) do out[#out + 1] = { 'p', proc } end
purge()
return reply(out)
