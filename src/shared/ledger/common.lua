-- What every script of the ledger shares (script.ts puts it in front of each). Redis is the judge of time;
-- rewards, texts and blobs pass through untouched: this file never parses a number that a completion earned.
--
-- Keys of a run, all in the hash slot of KEYS[1] = farm:{RUN}
--   :run        hash    settings, state, clock, counters, the driver's and the collector's marks, version of this layout, server (run_id and replid of the Redis
--                       whose ledger was last compared with the store)
--   :g:N        hash    one open group: task, place, lane, spare, left, done, refills, began; a member K has K.s K.t K.l K.w K.n K.a K.c K.o K.b K.x K.p K.q,
--                       of deaths of its workers K.ds (signature) K.dn (count) K.da (those when it was alone), and K.i: is alone now
--   :due:LANE   zset    open members "g-m" that wait for a place in the fleet's window, by the time (ms) from which they may have one
--   :live       zset    members "g-m" that have a place (queued or at work; K.q names its lane), by the time (ms) at which they are looked at again
--   :flight     zset    begun members "g-m" by the time of their first begin
--   :deadlines  zset    open groups by the run clock (ms) at which they close
--   :out        stream  closed groups not yet committed to a shard; id SEQ-0, SEQ dense from 1
--   :closed     bitmap  groups that are closed
--   :causes     hash    count of members without result, by cause
--   :spares     zset    groups that refill degenerate ones and are not open yet, by their number
--   :late       stream  evidence: answers that were not counted (capped)
-- Field spares of :run counts the groups that degenerate ones have called for: the run is over when groups + spares are closed.
-- Fields out:LANE of :run count the members with a place; at wake:LANE the driver wants to be woken, by the channel :wake.
--
-- A member:  (open) --begin--> rolling --accept--> accepted
--                                 `--rolled--> rolled --begin--> verifying --accept--> accepted
--            a lost lease goes back to (open) or to rolled; nothing leaves accepted.

local K = KEYS[1]
local RUN = K .. ':run'


local function int(v)
  return tonumber(v or '0') or 0
end

-- Calls a command on `key` with a list of arguments of any length: one call for many members costs little more than for one.
local function call_all(command, key, args)
  for i = 1, #args, 1000 do redis.call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end

local function group_key(g)
  return K .. ':g:' .. g
end

local function run_field(name)
  return redis.call('HGET', RUN, name)
end

-- Milliseconds, by Redis's clock made steady: what that was ever set back is added (steady_clock), else every lease and every
-- due time written before would hold for as long as the clock went back.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000) + int(run_field('skew'))
end

-- Called by who ticks and who takes the lease: notices that the clock went back since it was last looked at.
local function steady_clock()
  local t, seen = now(), int(run_field('seen'))
  if t < seen - 1000 then
    redis.call('HINCRBY', RUN, 'skew', seen - t)
    t = seen
  end
  redis.call('HSET', RUN, 'seen', math.max(t, seen))
  return t
end

local function count_cause(cause)
  redis.call('HINCRBY', K .. ':causes', cause, 1)
end

local function due_key(lane)
  return K .. ':due:' .. lane
end

-- The lane of a member's next job.
local function lane_of(stage, group_lane)
  if stage == 'rolled' or stage == 'verifying' then return 'verify' end
  return group_lane or 'rollout'
end

-- The driver is woken when a sixth of what is out has come back: before the queue is empty, and not for each.
local function set_wake(lane, out)
  redis.call('HSET', RUN, 'wake:' .. lane, out - math.max(1, math.floor(out / 6)))
end

local function count_out(lane, n)
  local out = redis.call('HINCRBY', RUN, 'out:' .. lane, -n)
  if out <= int(run_field('wake:' .. lane)) then
    -- Once: the next round sets the mark anew.
    redis.call('HSET', RUN, 'wake:' .. lane, -1)
    redis.call('PUBLISH', K .. ':wake', lane .. ' ' .. out)
  end
end

-- Member m has no place any more.
local function leave_place(g, m)
  redis.call('ZREM', K .. ':live', g .. '-' .. m)
  local lane = redis.call('HGET', group_key(g), m .. '.q')
  if not lane then return end
  redis.call('HDEL', group_key(g), m .. '.q')
  count_out(lane, 1)
end

-- Closes group g once: the stream entry has every member's text, made here only for those who have none. `fresh`: by
-- member, {text, blobs} of outcomes that are taken in this step and were not written into the group's hash.
local function close_group(g, by, cause, fresh, count)
  local key, size = group_key(g), int(run_field('size'))
  local f = {}
  if count == size then
    local known = redis.call('HMGET', key, 'task', 'spare')
    f['task'], f['spare'] = known[1], known[2]
  else
    local flat = redis.call('HGETALL', key)
    for i = 1, #flat, 2 do f[flat[i]] = flat[i + 1] end
  end
  if not f['task'] then return end
  local texts, blobs, missing, freed = {}, {}, 0, {}
  for m = 0, size - 1 do
    local new = fresh and fresh[tostring(m)]
    local text, blob = f[m .. '.o'], f[m .. '.b']
    if new then text, blob = new[1], new[2] end
    if not text then
      local attempts = int(f[m .. '.n']) > 0 and int(f[m .. '.a']) + 1 or 0
      text = '{"member":' .. m .. ',"status":"no_result","cause":"' .. cause .. '","detail":"","attempts":' .. attempts .. '}'
      missing = missing + 1
      redis.call('ZREM', K .. ':flight', g .. '-' .. m)
      local lane = f[m .. '.q']
      if lane then
        redis.call('ZREM', K .. ':live', g .. '-' .. m)
        freed[lane] = (freed[lane] or 0) + 1
      else
        redis.call('ZREM', due_key(lane_of(f[m .. '.s'], f['lane'])), g .. '-' .. m)
      end
    end
    texts[m + 1] = text
    if blob then blobs[#blobs + 1] = blob end
  end
  for lane, n in pairs(freed) do count_out(lane, n) end
  if missing > 0 then
    redis.call('HINCRBY', RUN, 'accepted', missing)
    redis.call('HINCRBY', RUN, 'no_result', missing)
    redis.call('HINCRBY', K .. ':causes', cause, missing)
  end
  local seq = redis.call('HINCRBY', RUN, 'closed', 1)
  redis.call('XADD', K .. ':out', seq .. '-0', 'group', g, 'task', f['task'], 'by', by,
    'members', '[' .. table.concat(texts, ',') .. ']', 'blobs', table.concat(blobs), unpack(f['spare'] and {'spare', f['spare']} or {}))
  redis.call('SETBIT', K .. ':closed', g, 1)
  redis.call('ZREM', K .. ':deadlines', g)
  redis.call('DEL', key)
  redis.call('PUBLISH', K .. ':closed', seq)
end

-- Opens groups that are not closed yet, each {number, task, place, lane, spare or ''}.
local function open_all(groups)
  local size, clock, t = int(run_field('size')), int(run_field('clock')), now()
  local till, due, deadlines = clock + int(run_field('slot_wait_ms')), {}, {}
  for _, group in ipairs(groups) do
    local g, task, place, lane, spare = unpack(group)
    if redis.call('GETBIT', K .. ':closed', g) == 0 then
      local fields = {'task', task, 'place', place, 'left', size, 'done', 0, 'refills', 0}
      if lane ~= 'rollout' then fields[#fields + 1], fields[#fields + 2] = 'lane', lane end
      if spare ~= '' then fields[#fields + 1], fields[#fields + 2] = 'spare', spare end
      redis.call('HSET', group_key(g), unpack(fields))
      deadlines[#deadlines + 1], deadlines[#deadlines + 2] = till, g
      local list = due[lane] or {}
      due[lane] = list
      for m = 0, size - 1 do list[#list + 1], list[#list + 2] = t, g .. '-' .. m end
    end
  end
  call_all('ZADD', K .. ':deadlines', deadlines)
  for lane, list in pairs(due) do call_all('ZADD', due_key(lane), list) end
end

-- Takes outcomes of different members of group g, whose right to speak has been checked, one after another, and closes the
-- group at the one that was all it waited for. Each is {m, status, text, blobs, cause}.
-- Gives how many were taken, and whether the group is closed: those behind come too late.
local function settle_all(g, outcomes)
  local key, fields = group_key(g), {'left', 'done'}
  for i, o in ipairs(outcomes) do fields[i + 2] = o[1] .. '.q' end
  local f = redis.call('HMGET', key, unpack(fields))
  local left, done = int(f[1]), int(f[2])
  local enough = run_field('close') == 'at_least' and int(run_field('at_least')) or math.huge
  local taken, by, ids, fresh, freed, counts = 0, nil, {}, {}, {}, {}
  for i, o in ipairs(outcomes) do
    local m, status, lane = o[1], o[2], f[i + 2]
    taken, left = i, left - 1
    counts[status] = (counts[status] or 0) + 1
    if status == 'completed' then done = done + 1 else count_cause(o[5]) end
    ids[i], fresh[m] = g .. '-' .. m, { o[3], o[4] }
    if lane then freed[lane] = (freed[lane] or 0) + 1 end
    if left == 0 then by = 'all' elseif done >= enough then by = 'at_least' end
    if by then break end
  end
  redis.call('ZREM', K .. ':live', unpack(ids))
  redis.call('ZREM', K .. ':flight', unpack(ids))
  for lane, n in pairs(freed) do count_out(lane, n) end
  redis.call('HINCRBY', RUN, 'accepted', taken)
  for status, n in pairs(counts) do redis.call('HINCRBY', RUN, status, n) end
  if by then
    close_group(g, by, by == 'all' and '' or 'group_closed', fresh, taken)
    return taken, true
  end
  local gone, kept = {}, {'left', left, 'done', done}
  for i = 1, taken do
    local m, text, blobs = outcomes[i][1], outcomes[i][3], outcomes[i][4]
    for _, name in ipairs({'.t', '.l', '.w', '.c', '.p', '.b', '.i', '.q', '.ds', '.dn', '.da'}) do gone[#gone + 1] = m .. name end
    kept[#kept + 1], kept[#kept + 2] = m .. '.o', text
    kept[#kept + 1], kept[#kept + 2] = m .. '.s', 'accepted'
    if blobs ~= '' then kept[#kept + 1], kept[#kept + 2] = m .. '.b', blobs end
  end
  call_all('HDEL', key, gone)
  call_all('HSET', key, kept)
  return taken, false
end

local function settle(g, m, status, text, blobs, cause)
  settle_all(g, {{ m, status, text, blobs, cause }})
end

-- The holder of `token` may speak for member m; anyone else leaves evidence, and is told what became of it.
local function speaks(g, m, token)
  local held = redis.call('HGET', group_key(g), m .. '.t')
  if held == token then return nil end
  local why = redis.call('GETBIT', K .. ':closed', g) == 1 and 'closed' or 'superseded'
  if run_field('state') == 'cancelled' then why = 'cancelled' end
  return why
end

local function evidence(g, m, token, why, text)
  redis.call('HINCRBY', RUN, 'late', 1)
  redis.call('XADD', K .. ':late', 'MAXLEN', '~', '1000', '*', 'group', g, 'member', m, 'token', token, 'why', why, 'text', string.sub(text, 1, 2000))
end

-- Gives member m back, to be begun again after delay ms; at once means before those that were never begun.
local function give_back(g, m, delay)
  local key = group_key(g)
  local f = redis.call('HMGET', key, m .. '.s', 'lane')
  local stage = (f[1] == 'verifying' or f[1] == 'rolled') and 'rolled' or 'open'
  leave_place(g, m)
  redis.call('HDEL', key, m .. '.t', m .. '.l', m .. '.w', m .. '.p', m .. '.i')
  redis.call('HSET', key, m .. '.s', stage)
  redis.call('ZADD', due_key(lane_of(stage, f[2])), delay > 0 and now() + delay or 0, g .. '-' .. m)
end

-- For each lane (rollout, light, verify): members with a place, members that may have one now, open members; as texts.
local function lane_counts(answer)
  local t = now()
  for _, lane in ipairs({'rollout', 'light', 'verify'}) do
    local out, waiting = int(run_field('out:' .. lane)), redis.call('ZCARD', due_key(lane))
    if out > 0 then set_wake(lane, out) end
    answer[#answer + 1] = tostring(out)
    answer[#answer + 1] = tostring(waiting == 0 and 0 or redis.call('ZCOUNT', due_key(lane), '-inf', t))
    answer[#answer + 1] = tostring(out + waiting)
  end
  return answer
end

-- The server that runs now, and whether it is the one whose ledger was last compared with the store: one that was restarted
-- may have lost what was acknowledged, and one that took over may never have had it.
local function server_id()
  local info = redis.call('INFO', 'server', 'replication')
  -- One that was a replica for a while has the same run_id and perhaps another's data: its replid is another.
  return (string.match(info, 'run_id:(%w+)') or '') .. ':' .. (string.match(info, 'master_replid:(%w+)') or '')
end

local function same_server()
  local known = run_field('server')
  return not known or known == server_id()
end

-- A shard with the ledger's next groups is in the store: they leave the stream, and the groups that refill degenerate ones of
-- them (`refills`, from `first` on) are called for. False if these are not the next ones.
local function commit_shard(number, from, to, link, refills, first)
  if run_field('shards') ~= number or int(run_field('committed')) + 1 ~= int(from) or int(to) > int(run_field('closed')) then return false end
  redis.call('HSET', RUN, 'shards', int(number) + 1, 'committed', to, 'link', link)
  redis.call('HDEL', RUN, 'fixed_to')
  if #refills >= first then redis.call('HINCRBY', RUN, 'spares', #refills - first + 1) end
  for i = first, #refills do redis.call('ZADD', K .. ':spares', refills[i], refills[i]) end
  redis.call('XTRIM', K .. ':out', 'MINID', (int(to) + 1) .. '-0')
  return true
end

-- The run was paused now, for its reason. A pause lasts until something is accepted: one that is tried again and comes back is the same.
local function pause_began()
  if run_field('paused_at') ~= run_field('accepted') then redis.call('HSET', RUN, 'paused_at', run_field('accepted'), 'paused_since', now()) end
  redis.call('HSET', RUN, 'paused_reason', run_field('reason'))
end

local function drives(epoch)
  return run_field('driver_epoch') == epoch
end

-- The cause of members that are left where the run ends before its plan: nobody will ask for them any more.
local function over_by()
  local state = run_field('state')
  if state == 'cancelled' then return 'cancelled' end
  if state == 'stopped' and run_field('exit') == '2' then return 'misconfigured' end
end
