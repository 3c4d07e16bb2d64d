import { createHash } from "node:crypto";
import { encodeText } from "../columns.ts";

/*
 * A notification says which tasks changed, and nothing about them: who sends it, then one line for each task.
 * Encoded ids contain no line break.
 */

/** Below the 8,000 bytes of Postgres by far: what is sent is kept in a queue that all listeners share. */
export const MAX_PAYLOAD_BYTES = 199;

/** A longer id is known by its hash. */
const MAX_KEY_BYTES = 128;

/** What notifications call a task. */
export function hintKey(taskId: string): string {
  const key = encodeText(taskId);
  if (Buffer.byteLength(key) <= MAX_KEY_BYTES) return key;
  return `#${createHash("sha256").update(key).digest("base64url")}`;
}

/** As few payloads as hold these keys; with no key, one that only shows that `origin` is heard. */
export function packHints(origin: string, keys: Iterable<string>): string[] {
  const payloads = [origin];
  for (const key of keys) {
    const last = payloads.length - 1;
    const longer = `${payloads[last]}\n${key}`;
    if (payloads[last] !== origin && Buffer.byteLength(longer) > MAX_PAYLOAD_BYTES) {
      payloads.push(`${origin}\n${key}`);
    } else payloads[last] = longer;
  }
  return payloads;
}

/** Reads a payload; anybody may send any, so that nothing about it is certain. */
export function readHints(payload: string): { readonly origin: string; readonly keys: readonly string[] } {
  const [origin = "", ...keys] = payload.split("\n");
  return { origin, keys };
}
