import { canonicalJson, type JsonObject } from "@longjobs/core";

/** Marks our states, so that a server's own `requestState` codec and ours can share one server. */
export const requestStatePrefix = "lj1.";

/** A person may take their time over a form; a state that is older is asked for anew. */
const maxAgeMs = 60 * 60 * 1000;

/**
 * Signs and opens what a client carries from one round to the next. The client can read it but not change it
 * (spec: `requestState` "is integrity-protected"): HMAC-SHA256 over the text.
 */
export class RequestStates {
  readonly #secret: string;
  readonly #now: () => number;
  #key: Promise<CryptoKey> | undefined;

  /** @param secret - At least 32 characters; the same on every instance that serves the same clients. */
  constructor(secret: string, now: () => number) {
    this.#secret = secret;
    this.#now = now;
  }

  async sign(content: JsonObject): Promise<string> {
    const body = toBase64Url(
      new TextEncoder().encode(canonicalJson({ content, expiresAtMs: this.#now() + maxAgeMs })),
    );
    const signature = await crypto.subtle.sign("HMAC", await this.#hmacKey(), new TextEncoder().encode(body));
    return `${requestStatePrefix}${body}.${toBase64Url(new Uint8Array(signature))}`;
  }

  /** The content of a state of ours, or `undefined` when it was changed, is too old, or is no state of ours. */
  async open(state: string): Promise<JsonObject | undefined> {
    if (!state.startsWith(requestStatePrefix)) return undefined;
    const [body, signature, ...rest] = state.slice(requestStatePrefix.length).split(".");
    if (body === undefined || signature === undefined || rest.length > 0) return undefined;
    const bytes = fromBase64Url(signature);
    if (bytes === undefined) return undefined;
    const genuine = await crypto.subtle.verify(
      "HMAC",
      await this.#hmacKey(),
      bytes,
      new TextEncoder().encode(body),
    );
    const text = genuine ? fromBase64Url(body) : undefined;
    if (text === undefined) return undefined;
    const { content, expiresAtMs } = JSON.parse(new TextDecoder().decode(text)) as {
      content: JsonObject;
      expiresAtMs: number;
    };
    return this.#now() < expiresAtMs ? content : undefined;
  }

  #hmacKey(): Promise<CryptoKey> {
    this.#key ??= crypto.subtle.importKey(
      "raw",
      new TextEncoder().encode(this.#secret),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign", "verify"],
    );
    return this.#key;
  }
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]*$/.test(text)) return undefined;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (character) => character.charCodeAt(0));
  } catch {
    // Not base64 of any length: the same as a wrong signature.
    return undefined;
  }
}
