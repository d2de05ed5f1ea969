-- This process waits no more for some queries; one that nobody waits for and that is not yet asked is given up.
-- ARGV  1 options (JSON)  2.. keys
-- Gives what every script here answers (calls.lua), and nothing else.
agree()
local keys = {}
for i = 2, #ARGV do keys[#keys + 1] = ARGV[i] end
local status, gone = {}, {}
for i, text in ipairs(states(keys)) do
  local s = read_state(text)
  local from, to = has(s.ps, ME)
  if from then
    s.ps = string.sub(s.ps, 1, from) .. string.sub(s.ps, to + 1)
    if s.token == WAITING and not any_alive(s.ps) then
      gone[#gone + 1] = keys[i]
    else
      status[#status + 1] = keys[i]
      status[#status + 1] = write_state(s.token, s)
    end
  end
end
bulk('HSET', U .. ':s', status)
drop(gone)
bulk('ZREM', U .. ':w', gone)
return reply()
