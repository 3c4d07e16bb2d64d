import { canonicalJson } from "./canonical-json.ts";

/** What an idempotency key is unique within, and the key. */
export interface KeyedWork {
  readonly scope?: string | undefined;
  readonly tool: string;
  readonly key: string;
}

/** The form of the text that is hashed: another form would give other ids, and count as 2. */
const form = 1;

/**
 * The id of the one task that a key stands for: the store's own refusal of a taken id then makes the key unique. Without the
 * secret nobody can work it out, so it is as unguessable as any other id. 64 hex digits.
 */
export async function idempotentTaskId(secret: string, { scope, tool, key }: KeyedWork): Promise<string> {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const hmac = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  const text = canonicalJson([form, scope ?? null, tool, key]);
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", hmac, encoder.encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
