-- Accepts a member's outcome, once; closes its group when that was all it waited for, in the same step.
-- ARGV  1 group  2 member  3 token  4 status ('completed' | 'no_result')  5 member text  6 blobs  7 cause or ''
-- Gives 'accepted', or why it was not counted ('closed' | 'superseded' | 'cancelled'): then it is kept as evidence.
local g, m = ARGV[1], ARGV[2]
local why = speaks(g, m, ARGV[3])
if why then
  evidence(g, m, ARGV[3], why, ARGV[5])
  return why
end
settle(g, m, ARGV[4], ARGV[5], ARGV[6], ARGV[7])
return 'accepted'
