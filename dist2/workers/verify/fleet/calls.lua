-- Calls: who may make one now, with which flights; and what every script answers.

-- Permits that are out, once they are counted; calls and queries to be charged.
local out, charged = nil, { 0, 0 }

-- May a call be made now? How many queries it may have, and whether it is the probe; or in how many ms to ask again
-- (-1: somebody will say), and whether all permits are out.
local function gate()
  out = out or redis.call('ZCARD', U .. ':p')
  if out >= O.concurrency then return nil, -1, true end
  if S.pause > T then return nil, S.pause - T end
  if S.breaker == 'open' and S.till > T then return nil, S.till - T end
  if S.breaker == 'half' and redis.call('ZSCORE', U .. ':p', S.probe) then return nil, -1 end
  if S.trial ~= '' and S.trial ~= '?' and redis.call('ZSCORE', U .. ':p', S.trial) then return nil, -1 end
  if O.spacing > 0 and S.next > T then return nil, math.ceil(S.next - T) end
  local probe = S.breaker ~= 'closed'
  return (probe or S.single) and 1 or S.batch, probe
end

-- Calls may be taken ahead, as many as this process has under way to inherit from, while the upstream is well and
-- requests are not counted by the second. `taken` by this script: calls, and those ahead among them.
local function may_go_ahead(taken, ahead)
  return ahead + O.held < math.min(O.ahead, O.under + taken - ahead) and O.spacing == 0 and S.breaker == 'closed' and S.pause <= T and S.refused <= T and S.trial == ''
end

local function charge(items)
  charged[1], charged[2] = charged[1] + 1, charged[2] + items
end

-- When the next request may go, where there is a rate.
local function space()
  if O.spacing == 0 then return end
  S.next = math.max(T, S.next) + O.spacing
  redis.call('HSET', U, 'next', string.format('%.3f', S.next))
end

-- A call with these flights (key, state, query or '' where this process has it).
local function grant(number, flights, probe, ahead)
  local token = O.token .. '.' .. number
  local permit = ME .. '|' .. token
  local keys, status, items, queries, foreign = {}, {}, {}, {}, false
  for i, one in ipairs(flights) do
    local key, s = one[1], one[2]
    keys[i] = key
    status[2 * i - 1], status[2 * i] = key, write_state(token, s)
    items[i] = string.format('%s %d %d', key, s.n, s.wt)
    queries[i] = one[3]
    foreign = foreign or one[3] ~= ''
  end
  redis.call('ZADD', U .. (ahead and ':a' or ':p'), T + O.permit, permit)
  redis.call('RPUSH', U .. ':k:' .. token, T, unpack(keys))
  redis.call('PEXPIRE', U .. ':k:' .. token, O.permit + 600000)
  redis.call('HSET', U .. ':s', unpack(status))
  if probe then
    if S.breaker == 'open' then turn('half') end
    S.probe = permit
    redis.call('HSET', U, 'probe', permit)
  end
  if S.trial ~= '' then
    S.trial = permit
    redis.call('HSET', U, 'trial', permit)
  end
  if not ahead then
    out = out and out + 1
    space()
    charge(#keys)
  end
  return { token, tostring(S.gen), (S.single and '1' or '0') .. (ahead and 'a' or ''), table.concat(items, ' '), foreign and queries or {} }
end

-- Calls to make of new flights at once, without going through the list, where nobody waits in it; the rest waits.
local function take_new(flights, calls)
  local at, ahead = 1, 0
  if O.now and S.breaker == 'closed' and redis.call('ZCARD', U .. ':w') == 0 then
    while at <= #flights and #calls - ahead < O.calls do
      local size, _, full = gate()
      local early = full and may_go_ahead(#calls, ahead)
      if early then size = S.single and 1 or S.batch end
      if not size then break end
      local part = {}
      for i = at, math.min(#flights, at + size - 1) do part[#part + 1] = flights[i] end
      calls[#calls + 1] = grant('n' .. #calls, part, false, early)
      if early then ahead = ahead + 1 end
      at = at + #part
    end
  end
  local again, due = {}, {}
  -- In the order in which they are wanted, a little before now.
  for i = at, #flights do wait_again(again, due, flights[i][1], flights[i][2], (i - at) / (#flights - at + 1) - 1) end
  put_waiting(again, due)
end

-- Gives back what the end of a lease has ended.
local function lapse()
  for _, name in ipairs({ ':p', ':a' }) do
    for _, permit in ipairs(redis.call('ZRANGEBYSCORE', U .. name, '-inf', T)) do
      out = nil
      redis.call('ZREM', U .. name, permit)
      release(string.match(permit, '|(.+)$'))
    end
  end
end

-- The flights that may be asked now, looked at once: `line` is read on from where the last call ended.
local function look()
  local keys = redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, 2 * O.batch)
  return { keys = keys, queries = all_of('HMGET', U .. ':q', keys), of = states(keys), at = 1, taken = {} }
end

-- Those of the next call, those that nobody waits for, and one that only others can ask.
local function choose(line, size)
  local chosen, gone, bytes, suspects, others = {}, {}, 0, false, nil
  local from = line.at
  for n = from, #line.keys do
    local key = line.keys[n]
    if not line.taken[n] then
      local s = read_state(line.of[n])
      local mine = has(s.ps, ME)
      if not any_alive(s.ps) then
        gone[#gone + 1], line.taken[n] = key, true
      elseif mine or line.queries[n] then
        local query = line.queries[n] or ''
        if #chosen == 0 then suspects = s.cap > 0 end
        -- What may have spoiled a batch travels with its like only.
        local room = s.cap > 0 and math.min(size, s.cap) or size
        if (s.cap > 0) == suspects and #chosen < room and (#chosen == 0 or bytes + #query <= O.bytes) then
          size = room
          bytes = bytes + #query
          chosen[#chosen + 1], line.taken[n] = { key, s, mine and '' or query }, true
          if #chosen == size then break end
        end
      elseif not others then
        others = { key, s.ps }
      end
    end
  end
  while line.taken[line.at] do line.at = line.at + 1 end
  return chosen, gone, others
end

-- Calls to make now, at most O.calls, and some ahead of their time; and in how many ms to look again (-1: somebody will say).
local function take(calls)
  if O.calls == 0 then return -1 end
  lapse()
  local ahead = 0
  for _, call in ipairs(calls) do
    if string.sub(call[3], -1) == 'a' then ahead = ahead + 1 end
  end
  local line
  while #calls - ahead < O.calls do
    local head = T
    if not line or line.at > #line.keys then
      local first = redis.call('ZRANGE', U .. ':w', 0, 0, 'WITHSCORES')
      if #first == 0 then return -1 end
      head = tonumber(first[2])
      if head > T then return head - T end
      line = nil
    end
    local size, probe, full = gate()
    local early = full and may_go_ahead(#calls, ahead)
    if not size and not early then return probe end
    if early then size, probe = S.single and 1 or S.batch, false end
    if size > 1 and line then
      -- A full batch may need more than what is left of it.
      line, head = nil, tonumber(redis.call('ZRANGE', U .. ':w', 0, 0, 'WITHSCORES')[2])
    end
    if size > 1 and (early or not O.now and T - head < O.window) and redis.call('ZCOUNT', U .. ':w', '-inf', T) < size then
      -- What goes ahead goes in full batches: more may come while it waits.
      return early and -1 or O.window - (T - head)
    end
    line = line or look()
    local chosen, gone, others = choose(line, size)
    drop(gone)
    for _, one in ipairs(chosen) do gone[#gone + 1] = one[1] end
    if #gone == 0 then
      -- What is left is for those who know its query.
      if others and not early then post(others[2], others[1], 'k', '', ME) end
      return -1
    end
    bulk('ZREM', U .. ':w', gone)
    if #chosen > 0 then
      calls[#calls + 1] = grant(#calls, chosen, probe, early)
      if early then ahead = ahead + 1 end
    elseif early then
      return -1
    end
  end
  return 0
end

-- What an upstream has in Redis goes when nobody has asked it for long.
local function stay()
  redis.call('PEXPIRE', U, 604800000)
  for _, name in ipairs({ ':w', ':q', ':s', ':l' }) do redis.call('PEXPIRE', U .. name, 3600000) end
end

-- What every script answers: wake ms, events, calls; of the keys asked about a code each, and the values of those
-- codes that have one; names of processes, or permits; how many flights wait. Few texts, because each costs the reader
-- more than its bytes.
local function reply(found, calls, names)
  calls = calls or {}
  local codes, values = {}, {}
  for i, one in ipairs(found or {}) do
    codes[i] = one[1]
    if one[2] then values[#values + 1] = one[2] end
  end
  local wake = take(calls)
  count('calls', charged[1])
  count('items', charged[2])
  if O.calls == 0 and redis.call('ZCARD', U .. ':p') < O.concurrency then
    local first = redis.call('ZRANGEBYSCORE', U .. ':w', '-inf', T, 'LIMIT', 0, 1)
    if first[1] then post(read_state(redis.call('HGET', U .. ':s', first[1])).ps, first[1], 'k', '', ME) end
  end
  send()
  return { tostring(wake), events, calls, table.concat(codes), values, names or {}, redis.call('ZCARD', U .. ':w') }
end
