import { defineScript, type LuaScript } from "../lua-script.ts";

export const findClaimable: LuaScript = defineScript(`
-- find-claimable: the tasks of one shard whose lease has lapsed, those that wait longest first.
-- KEYS[1..] indexes
-- ARGV[1] most members of each index
-- Returns: the members of each index, in the order of KEYS
-- Atomic: reads only. Touches: KEYS only.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for i = 1, #KEYS do found[i] = redis.call('ZRANGEBYSCORE', KEYS[i], '-inf', now, 'LIMIT', 0, ARGV[1]) end
return found
`);
