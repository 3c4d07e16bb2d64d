import { defineScript, type LuaScript } from "../lua-script.ts";

export const findVersions: LuaScript = defineScript(`
-- find-versions: the version of each of these tasks of one shard.
-- KEYS[1..] tasks
-- Returns: a version, or nothing for a task that is unknown or has expired, in the order of KEYS
-- Atomic: reads only. Touches: KEYS only.
local found = {}
for i = 1, #KEYS do found[i] = redis.call('HGET', KEYS[i], 'version') end
return found
`);
