import { defineScript, type LuaScript } from "../lua-script.ts";

export const sweepTasks: LuaScript = defineScript(`
-- sweep-tasks: remove what expired tasks of one shard left behind; the server has deleted the tasks themselves.
-- KEYS[1] expiries  KEYS[2] index names  KEYS[3..] indexes, then tasks
-- ARGV[1] number of tasks  ARGV[2..] members; the names of the indexes
-- Returns: the number of tasks removed, which spares those created anew meanwhile
-- Atomic: all or nothing. Touches: KEYS only.
local call = redis.call
local count = tonumber(ARGV[1])
local lastIndex = #KEYS - count
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local swept = 0
for i = 1, count do
  local member = ARGV[1 + i]
  local ends = call('ZSCORE', KEYS[1], member)
  if ends and tonumber(ends) <= now and call('EXISTS', KEYS[lastIndex + i]) == 0 then
    call('ZREM', KEYS[1], member)
    for k = 3, lastIndex do call('ZREM', KEYS[k], member) end
    swept = swept + 1
  end
end
for k = 3, lastIndex do
  if call('EXISTS', KEYS[k]) == 0 then call('SREM', KEYS[2], ARGV[count + k - 1]) end
end
return swept
`);
