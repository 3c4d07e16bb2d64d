import { defineScript, type LuaScript } from "../lua-script.ts";

export const claimTask: LuaScript = defineScript(`
-- claim-task: give a task a lease if it is still in the index it was found in and its lease has lapsed.
-- KEYS[1] task  KEYS[2] index
-- ARGV[1] member  ARGV[2] name of the index  ARGV[3] lease, JSON text  ARGV[4] lease, ms  ARGV[5] lease token
-- Returns: field, JSON text, ... of the task as it is then · nothing when it cannot be claimed: its entry says so then
-- Atomic: all or nothing. Touches: KEYS only. Tells: the channel with the name of KEYS[1].
local call, task = redis.call, KEYS[1]
local stored = call('HMGET', task, '@index', '@due', '@bytes')
if stored[1] ~= ARGV[2] then
  -- The task expired, or the id was created anew with another tool: what is here is left over.
  call('ZREM', KEYS[2], ARGV[1])
  return {}
end
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if tonumber(stored[2]) > now then
  -- Another claim was quicker. Whatever led here, the entry now says when to look again.
  call('ZADD', KEYS[2], stored[2], ARGV[1])
  return {}
end

local bytes = stored[3] + #'lease' + #ARGV[3] + 4
local due = now + ARGV[4]
call('HSET', task, 'lease', ARGV[3], '@token', ARGV[5], '@due', due, '@bytes', bytes)
local version = call('HINCRBY', task, 'version', 1)
call('ZADD', KEYS[2], due, ARGV[1])
redis.pcall('PUBLISH', task, version)
return call('HGETALL', task)
`);
