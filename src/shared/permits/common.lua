-- What the processes that use one engine hold of it. Its one key, K = farm:{engine:ID}, is a hash: process -> one record, told anew with
-- every call by the process itself, so that a Redis that lost writes learns it again. Counts of a few digits only.

local K = KEYS[1]

local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function whole(number)
  return string.format('%d', number)
end

-- expires, starting, memory, waiting since, waiting until, wanted memory
local function parse(text)
  local record = {}
  for number in string.gmatch(text, '%d+') do record[#record + 1] = tonumber(number) end
  return record
end
