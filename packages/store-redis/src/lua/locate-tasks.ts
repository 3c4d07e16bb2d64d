import { defineScript, type LuaScript } from "../lua-script.ts";

export const locateTasks: LuaScript = defineScript(`
-- locate-tasks: the index that each of these tasks of one shard is in.
-- KEYS[1..] tasks
-- Returns: the name of an index, or nothing for a task that is finished, no task, or unknown, in the order of KEYS
-- Atomic: reads only. Touches: KEYS only.
local found = {}
for i = 1, #KEYS do found[i] = redis.call('HGET', KEYS[i], '@index') end
return found
`);
