import { defineScript, type LuaScript } from "../lua-script.ts";

export const getTask: LuaScript = defineScript(`
-- get-task: every field of a task. A script, because a Cluster client sends those to masters only: reads never go back.
-- KEYS[1] task
-- Returns: field, JSON text, field, JSON text, ...; nothing when there is no such task, or it has expired
-- Atomic: reads only. Touches: KEYS only.
return redis.call('HGETALL', KEYS[1])
`);
