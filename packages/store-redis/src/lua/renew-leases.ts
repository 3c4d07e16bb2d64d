import { defineScript, type LuaScript } from "../lua-script.ts";

export const renewLeases: LuaScript = defineScript(`
-- renew-leases: move the deadline of each lease of one shard whose token is still the task's.
-- KEYS[1..] tasks, then indexes
-- ARGV[1] lease, ms  ARGV[2] number of tasks  ARGV[3..] lease token, member, ... of each task; the names of the indexes
-- Returns: for each task 1 renewed · 0 lost · the name of the index it is in, which was not given: not renewed
-- Atomic: each task by itself. Touches: KEYS only.
local call = redis.call
local count = tonumber(ARGV[2])
local keyOf = {}
for i = count + 1, #KEYS do keyOf[ARGV[count + 2 + i]] = KEYS[i] end
local time = call('TIME')
local due = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
local answers = {}
for i = 1, count do
  local stored = call('HMGET', KEYS[i], '@token', 'status', '@index')
  local status, index = stored[2], stored[3]
  local ended = status == '"completed"' or status == '"failed"' or status == '"cancelled"'
  if stored[1] ~= ARGV[1 + 2 * i] or ended then answers[i] = 0
  elseif index and not keyOf[index] then answers[i] = index
  else
    call('HSET', KEYS[i], '@due', due)
    if index then call('ZADD', keyOf[index], due, ARGV[2 + 2 * i]) end
    answers[i] = 1
  end
end
return answers
`);
