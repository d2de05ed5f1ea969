-- What may be asked of an upstream: calls at once, and ms between two requests. Configurations may differ, and one list
-- serves them all: the strictest of those who asked lately holds for everybody.

local LATELY = 60000

local function agree()
  local own = string.format('%d %.3f', O.concurrency, O.spacing)
  redis.call('HSET', U .. ':l', own, T)
  local known = redis.call('HGETALL', U .. ':l')
  for i = 1, #known, 2 do
    if int(known[i + 1]) + LATELY < T then
      redis.call('HDEL', U .. ':l', known[i])
    else
      local concurrency, spacing = string.match(known[i], '^(%S+) (%S+)$')
      O.concurrency = math.min(O.concurrency, tonumber(concurrency))
      O.spacing = math.max(O.spacing, tonumber(spacing))
    end
  end
end
