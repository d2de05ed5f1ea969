-- Tells the queries of flights that wait, so that others can ask them.
-- ARGV  1 options (JSON)  2.. pairs of key, sealed query
-- Gives what every script here answers (calls.lua), and nothing else.
here()
local keys, queries = {}, {}
for i = 2, #ARGV, 2 do keys[#keys + 1] = ARGV[i] end
for i, text in ipairs(states(keys)) do
  if read_state(text).token == WAITING then
    queries[#queries + 1] = keys[i]
    queries[#queries + 1] = ARGV[2 * i + 1]
  end
end
bulk('HSET', U .. ':q', queries)
stay()
return reply()
