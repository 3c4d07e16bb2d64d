import { defineScript, type LuaScript } from "../lua-script.ts";

export const checkFormat: LuaScript = defineScript(`
-- check-format: the number of the format that these keys have; ours when there is none yet.
-- KEYS[1] format
-- ARGV[1] our number
-- Returns: the number
-- Atomic: all or nothing. Touches: KEYS only.
local found = redis.call('GET', KEYS[1])
if found then return found end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
`);
