-- Part of every script, behind common.lua: a run that another version of the farm opened is refused before anything is
-- read or written. Gives an error, `LEDGER_VERSION` and the version that it has (ledger-version.ts).
local VERSION = '2'
do
  local run = redis.call('HMGET', RUN, 'state', 'version')
  if run[1] and run[2] ~= VERSION then return redis.error_reply('LEDGER_VERSION ' .. (run[2] or '1')) end
end
