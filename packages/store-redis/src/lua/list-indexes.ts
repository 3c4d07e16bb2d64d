import { defineScript, type LuaScript } from "../lua-script.ts";

export const listIndexes: LuaScript = defineScript(`
-- list-indexes: the names of the indexes of tools in one shard.
-- KEYS[1] index names
-- Returns: the names
-- Atomic: reads only. Touches: KEYS only.
return redis.call('SMEMBERS', KEYS[1])
`);
