import { defineScript, type LuaScript } from "../lua-script.ts";

export const updateTask: LuaScript = defineScript(`
-- update-task: write a patch if, and only if, the stored version is the expected one.
-- KEYS[1] task
-- ARGV[1] expected version  ARGV[2] next version  ARGV[3] most bytes  ARGV[4] bytes the patch adds, at most
-- ARGV[5] number of fields set  ARGV[6..] field, JSON text, ... of these; deleted fields; facts
-- With facts, for a patch that touches the life, the lease or the index of a task:
-- KEYS[2] expiries  KEYS[3] index names  KEYS[4..] indexes
-- facts: member; time to live, ms, never, or empty; lease, ms, none, or empty; lease token, or empty; index of the
-- tool, or empty; the names of KEYS[4..]
-- Returns: 1 written · 0 no such task, or expired · {-1, version} stale · {-2, bytes} too large · {2, from, to} the
-- indexes the task moves between, one of which was not given
-- Atomic: all or nothing. Touches: KEYS only. Tells: the channel with the name of KEYS[1].
local call, task, ARGV = redis.call, KEYS[1], ARGV
local stored = call('HMGET', task, 'version', '@bytes')
if stored[1] ~= ARGV[1] then
  if stored[1] then return {-1, stored[1]} end
  return 0
end

local lastSet = 5 + 2 * ARGV[5]
local last = #ARGV
if KEYS[2] then last = last - 2 - #KEYS end
-- At least what the record takes: it is counted only when it seems to become too large.
local bytes = stored[2] + ARGV[4]
if bytes > tonumber(ARGV[3]) then
  local named = {}
  bytes = 1
  for i = 6, lastSet, 2 do
    named[ARGV[i]] = true
    bytes = bytes + #ARGV[i] + #ARGV[i + 1] + 4
  end
  for i = lastSet + 1, last do named[ARGV[i]] = true end
  for _, field in ipairs(call('HKEYS', task)) do
    if not named[field] and string.sub(field, 1, 1) ~= '@' then
      bytes = bytes + #field + call('HSTRLEN', task, field) + 4
    end
  end
  if bytes > tonumber(ARGV[3]) then return {-2, bytes} end
end

local member, ttl, lease, token, home = unpack(ARGV, last + 1, last + 5)
local from, to, keyOf
if member then
  -- The task as it will be: what the patch says, else what is stored.
  local patch = {}
  for i = 6, lastSet, 2 do patch[ARGV[i]] = ARGV[i + 1] end
  for i = lastSet + 1, last do patch[ARGV[i]] = false end
  local function after(field)
    if patch[field] ~= nil then return patch[field] end
    return call('HGET', task, field)
  end
  local status = after('status')
  local ended = status == '"completed"' or status == '"failed"' or status == '"cancelled"'
  if ended or after('kind') then to = ''
  elseif after('cancelRequestedAt') then to = 'cancelled'
  elseif home ~= '' then to = home
  else to = call('HGET', task, '@home') end
  from = call('HGET', task, '@index') or ''
  keyOf = { [''] = true }
  for i = 4, #KEYS do keyOf[ARGV[last + 2 + i]] = KEYS[i] end
  if (from ~= to or lease ~= '') and not (keyOf[from] and keyOf[to]) then return {2, from, to} end
end

-- The one command that a full server refuses comes first: after it nothing fails half way.
call('HSET', task, 'version', ARGV[2], '@bytes', bytes, unpack(ARGV, 6, lastSet))
if last > lastSet then call('HDEL', task, unpack(ARGV, lastSet + 1, last)) end
if member then
  if home ~= '' then call('HSET', task, '@home', home) end
  if lease ~= '' then
    local due = 0
    if lease ~= 'none' then
      local time = call('TIME')
      due = time[1] * 1000 + math.floor(time[2] / 1000) + lease
    end
    call('HSET', task, '@due', due)
    if token ~= '' then call('HSET', task, '@token', token) else call('HDEL', task, '@token') end
  end
  if from ~= to then
    if from ~= '' then call('ZREM', keyOf[from], member) end
    if to ~= '' then call('HSET', task, '@index', to) else call('HDEL', task, '@index') end
  end
  if to ~= '' and (from ~= to or lease ~= '') then
    call('ZADD', keyOf[to], call('HGET', task, '@due'), member)
    if to ~= 'cancelled' and to ~= 'due:' then call('SADD', KEYS[3], to) end
  end
  if ttl == 'never' then
    call('PERSIST', task)
    call('ZREM', KEYS[2], member)
  elseif ttl ~= '' then
    local ends = call('HGET', task, '@born') + ttl
    call('ZADD', KEYS[2], ends, member)
    -- A key lives through the millisecond it expires at; a task does not.
    call('PEXPIREAT', task, ends - 1)
  end
end
redis.pcall('PUBLISH', task, ARGV[2])
return 1
`);
