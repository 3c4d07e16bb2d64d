import { createHash } from "node:crypto";

/** A script and the name under which a server that has run it before knows it. */
export interface LuaScript {
  readonly source: string;
  readonly sha1: string;
}

/** A script from its source, whose first lines are its contract. */
export function defineScript(source: string): LuaScript {
  const trimmed = source.trim();
  return { source: trimmed, sha1: createHash("sha1").update(trimmed).digest("hex") };
}
