-- Accepts members' outcomes, each once; closes a group when that was all it waited for, in the same step. Those of one
-- group that stand together are taken together: what a step costs is its number of commands.
-- ARGV  septuples of group, member, token, status ('completed' | 'no_result'), member text, blobs, cause or ''
-- Gives for each 'accepted', or why it was not counted ('closed' | 'superseded' | 'cancelled'): then it is kept as evidence.
local answer = {}

local function late(i)
  local why = speaks(ARGV[i], ARGV[i + 1], ARGV[i + 2])
  evidence(ARGV[i], ARGV[i + 1], ARGV[i + 2], why, ARGV[i + 4])
  answer[#answer + 1] = why
end

local i = 1
while i <= #ARGV do
  local g, some, tokens, seen = ARGV[i], {}, {}, {}
  while ARGV[i] == g and not seen[ARGV[i + 1]] and #some < 500 do
    some[#some + 1], tokens[#tokens + 1], seen[ARGV[i + 1]] = i, ARGV[i + 1] .. '.t', true
    i = i + 7
  end
  local held, closed, n = redis.call('HMGET', group_key(g), unpack(tokens)), false, 1
  while n <= #some do
    local outcomes, first = {}, n
    while n <= #some and not closed and held[n] == ARGV[some[n] + 2] do
      local at = some[n]
      outcomes[#outcomes + 1] = { ARGV[at + 1], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], ARGV[at + 6] }
      n = n + 1
    end
    if #outcomes > 0 then
      local taken
      taken, closed = settle_all(g, outcomes)
      for _ = 1, taken do answer[#answer + 1] = 'accepted' end
      n = first + taken
    else
      late(some[n])
      n = n + 1
    end
  end
end
return answer
