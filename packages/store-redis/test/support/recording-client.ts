import type { Redis } from "ioredis";

/** One script as a store sent it. */
export interface ScriptCall {
  readonly sha1: string;
  readonly keys: readonly string[];
  readonly values: readonly string[];
}

/** A client as it is, and every script that goes through it. */
export function recordingClient(client: Redis): { readonly client: Redis; readonly calls: ScriptCall[] } {
  const calls: ScriptCall[] = [];
  const recording = Object.create(client) as Redis;
  recording.evalsha = ((sha1: string, count: number, ...rest: string[]) => {
    calls.push({ sha1, keys: rest.slice(0, count), values: rest.slice(count) });
    return client.evalsha(sha1, count, ...rest);
  }) as Redis["evalsha"];
  return { client: recording, calls };
}
