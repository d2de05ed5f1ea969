-- Kept answers: by last use and by expiry, within a bound of bytes.

local OVERHEAD = 450

local function forget(key)
  local size = redis.call('HSTRLEN', K .. ':cache', key)
  redis.call('ZREM', K .. ':exp', key)
  redis.call('ZREM', K .. ':lru', key)
  if redis.call('HDEL', K .. ':cache', key) == 1 then redis.call('DECRBY', K .. ':bytes', size + OVERHEAD) end
end

-- The kept answers of keys, false where there is none that may still be used.
local function recall(keys)
  local values, used, exp = all_of('HMGET', K .. ':cache', keys), {}, nil
  for i, value in ipairs(values) do
    if value then
      exp = exp or all_of('ZMSCORE', K .. ':exp', keys)
      if int(exp[i]) > T then
        used[#used + 1] = T
        used[#used + 1] = keys[i]
      else
        values[i] = false
      end
    end
  end
  bulk('ZADD', K .. ':lru', used)
  return values
end

local function evict(most)
  for _, key in ipairs(redis.call('ZRANGE', K .. ':lru', 0, most - 1)) do forget(key) end
end

local function purge()
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', K .. ':exp', '-inf', T, 'LIMIT', 0, 50)) do forget(key) end
  if O.full then evict(200) end
end

-- Keeps pairs of key and value, each for its time, and lets the least recently used go for them.
local function keep(entries)
  local keys, fields, lru, exp, sum, longest = {}, {}, {}, {}, 0, 0
  for _, entry in ipairs(entries) do
    local key, value, ttl = entry[1], entry[2], entry[3]
    local bytes = #value + OVERHEAD
    if not O.full and bytes <= O.room / 16 then
      local n = #fields
      keys[#keys + 1] = key
      fields[n + 1], fields[n + 2] = key, value
      lru[n + 1], lru[n + 2] = T, key
      exp[n + 1], exp[n + 2] = T + ttl, key
      sum, longest = sum + bytes, math.max(longest, ttl)
    end
  end
  if #keys == 0 then return end
  for i, known in ipairs(all_of('ZMSCORE', K .. ':lru', keys)) do
    if known then forget(keys[i]) end
  end
  bulk('HSET', K .. ':cache', fields)
  bulk('ZADD', K .. ':lru', lru)
  bulk('ZADD', K .. ':exp', exp)
  local bytes = redis.call('INCRBY', K .. ':bytes', sum)
  while bytes > O.room and redis.call('ZCARD', K .. ':lru') > 0 do
    evict(1)
    bytes = int(redis.call('GET', K .. ':bytes'))
  end
  -- When nobody writes any more, the whole goes with its last entry.
  for _, name in ipairs({ ':cache', ':lru', ':exp', ':bytes' }) do
    redis.call('PEXPIRE', K .. name, longest, 'NX')
    redis.call('PEXPIRE', K .. name, longest, 'GT')
  end
end
