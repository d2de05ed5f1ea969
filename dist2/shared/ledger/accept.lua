-- Accepts members' outcomes, each once; closes a group when that was all it waited for, in the same step.
-- ARGV  septuples of group, member, token, status ('completed' | 'no_result'), member text, blobs, cause or ''
-- Gives for each 'accepted', or why it was not counted ('closed' | 'superseded' | 'cancelled'): then it is kept as evidence.
local answer = {}
for i = 1, #ARGV, 7 do
  local g, m, token, text = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 4]
  local why = speaks(g, m, token)
  if why then
    evidence(g, m, token, why, text)
  else
    settle(g, m, ARGV[i + 3], text, ARGV[i + 5], ARGV[i + 6])
  end
  answer[#answer + 1] = why or 'accepted'
end
return answer
