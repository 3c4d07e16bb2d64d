import { defineScript, type LuaScript } from "../lua-script.ts";

export const findExpired: LuaScript = defineScript(`
-- find-expired: tasks of one shard that have expired, and the indexes in which they may have left an entry.
-- KEYS[1] expiries  KEYS[2] index names
-- ARGV[1] most tasks
-- Returns: {members, names of indexes of tools}
-- Atomic: reads only. Touches: KEYS only.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {
  redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1]),
  redis.call('SMEMBERS', KEYS[2]),
}
`);
