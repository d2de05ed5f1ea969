-- Who is alive, and what is to be told to whom.

local function is_alive(proc)
  if alive[proc] == nil then
    local till = redis.call('ZSCORE', K .. ':procs', proc)
    alive[proc] = till and (tonumber(till) > T or redis.call('EXISTS', K .. ':grace') == 1) or false
  end
  return alive[proc]
end

local function any_alive(ps)
  for proc in string.gmatch(ps or '', '%S+') do
    if is_alive(proc) then return true end
  end
  return false
end

local function here()
  local till = redis.call('ZSCORE', K .. ':procs', ME)
  -- We are late ourselves (Redis was away, or this machine slept): the others get time to come back too.
  if till and tonumber(till) <= T then redis.call('SET', K .. ':grace', 1, 'PX', O.grace) end
  redis.call('ZADD', K .. ':procs', T + O.lease, ME)
  alive[ME] = true
  agree()
end

local function post(ps, key, code, value, except)
  local record = key .. code .. string.format('%08d', #value) .. value
  for proc in string.gmatch(ps or '', '%S+') do
    if proc ~= except then
      local list = mail[proc]
      if not list then list = {} mail[proc] = list end
      list[#list + 1] = record
    end
  end
end

local function send()
  for proc, list in pairs(mail) do redis.call('PUBLISH', K .. ':n:' .. proc, table.concat(list)) end
end
