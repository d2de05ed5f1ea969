-- What the scripts of the fleet's window share. One fleet a realm.
--
-- Keys, in the hash slot of KEYS[1] = farm:{fleet REALM}
--   :LANE  hash  run -> 'out grant want turn until': members it has in the window, places granted and not yet fetched,
--                members it would put in besides, its place in the round, and the time (ms) at which it is forgotten.
--                '#turn' counts the turns, '#pace' is how many members end in a second. The key is gone when no run is in it.

local K = KEYS[1]

local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

local function int(v)
  return tonumber(v or '0') or 0
end
