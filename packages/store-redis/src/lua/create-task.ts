import { defineScript, type LuaScript } from "../lua-script.ts";

export const createTask: LuaScript = defineScript(`
-- create-task: keep a new record, unless its id is taken by a task that has not expired.
-- KEYS[1] task  KEYS[2] expiries  KEYS[3] index names  KEYS[4] the index that ARGV[6] names, else any
-- ARGV[1] member  ARGV[2] time to live, ms, or never  ARGV[3] lease, ms, or none  ARGV[4] lease token, or empty
-- ARGV[5] index of the tool  ARGV[6] index the task is in, or empty  ARGV[7] most bytes
-- ARGV[8..] field, JSON text, field, JSON text, ...
-- Returns: 1 kept · 0 the id is taken · {-2, bytes} too large
-- Atomic: all or nothing. Touches: KEYS only. Tells: the channel with the name of KEYS[1].
local call, task = redis.call, KEYS[1]
if call('EXISTS', task) == 1 then return 0 end
local bytes = 1
for i = 8, #ARGV, 2 do bytes = bytes + #ARGV[i] + #ARGV[i + 1] + 4 end
if bytes > tonumber(ARGV[7]) then return {-2, bytes} end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = 0
if ARGV[3] ~= 'none' then due = now + ARGV[3] end
-- The one command that a full server refuses comes first: after it nothing fails half way.
call('HSET', task, '@born', now, '@due', due, '@bytes', bytes, '@home', ARGV[5], unpack(ARGV, 8))
if ARGV[4] ~= '' then call('HSET', task, '@token', ARGV[4]) end
if ARGV[6] ~= '' then
  call('HSET', task, '@index', ARGV[6])
  call('ZADD', KEYS[4], due, ARGV[1])
  if ARGV[6] ~= 'cancelled' and ARGV[6] ~= 'due:' then call('SADD', KEYS[3], ARGV[6]) end
end
if ARGV[2] == 'never' then
  -- An entry of an earlier task with this id that no sweep has removed yet.
  call('ZREM', KEYS[2], ARGV[1])
else
  local ends = now + ARGV[2]
  call('ZADD', KEYS[2], ends, ARGV[1])
  -- A key lives through the millisecond it expires at; a task does not.
  call('PEXPIREAT', task, ends - 1)
end
redis.pcall('PUBLISH', task, 'created')
return 1
`);
