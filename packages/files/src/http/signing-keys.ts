import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { isLongJobsError, type TaskStore } from "@longjobs/core";

/** A reserved id: it has a character that no id on the wire has. */
const secretId = "files~signing-secret";
const secretKind = "transfer-secret";

interface SigningKey {
  /** Which key it is; tells nothing about it. */
  readonly name: string;
  readonly secret: Buffer;
}

/**
 * The keys that sign URLs: those of the options, the newest first; or one that the first instance makes and keeps in
 * the store, so that URLs outlive a restart and hold on every instance.
 */
export class SigningKeys {
  readonly #store: TaskStore;
  readonly #now: () => number;
  readonly #given: readonly SigningKey[];
  #stored: Promise<readonly SigningKey[]> | undefined;

  constructor(store: TaskStore, secrets: readonly string[], now: () => number) {
    this.#store = store;
    this.#now = now;
    this.#given = secrets.map((secret) => toKey(Buffer.from(secret)));
  }

  /** Signs a text with the newest key. */
  async sign(text: string): Promise<string> {
    const [key] = await this.#keys();
    if (key === undefined) throw new Error("There is no key to sign with.");
    return `${key.name}.${macOf(key, text).toString("base64url")}`;
  }

  /** True when a text was signed so with one of the keys. */
  async verify(text: string, signature: string): Promise<boolean> {
    const [name, mac = ""] = signature.split(".");
    const given = Buffer.from(mac, "base64url");
    let isRight = false;
    for (const key of await this.#keys()) {
      const expected = macOf(key, text);
      // Every key is tried, whatever its name: a wrong signature takes as long as a right one.
      const equal = given.length === expected.length && timingSafeEqual(given, expected);
      isRight ||= equal && name === key.name && mac === expected.toString("base64url");
    }
    return isRight;
  }

  async #keys(): Promise<readonly SigningKey[]> {
    if (this.#given.length > 0) return this.#given;
    this.#stored ??= this.#readOrMake();
    try {
      return await this.#stored;
    } catch (error) {
      this.#stored = undefined;
      throw error;
    }
  }

  async #readOrMake(): Promise<readonly SigningKey[]> {
    const found = await this.#read();
    if (found !== undefined) return [found];
    const stamp = new Date(this.#now()).toISOString();
    try {
      await this.#store.create({
        taskId: secretId,
        version: 1,
        // Terminal: it is nobody's work, and no claim ever looks at it.
        status: "completed",
        result: {},
        createdAt: stamp,
        lastUpdatedAt: stamp,
        ttlMs: null,
        retentionMs: null,
        attempt: 0,
        crashes: 0,
        kind: secretKind,
        data: { secret: randomBytes(32).toString("base64url") },
      });
    } catch (error) {
      // Another instance was first; and a write that was reported as failed may have happened.
      const stored = await this.#read();
      if (stored !== undefined) return [stored];
      throw error;
    }
    const stored = await this.#read();
    return stored === undefined ? [] : [stored];
  }

  async #read(): Promise<SigningKey | undefined> {
    try {
      const record = await this.#store.get(secretId);
      const { secret } = (record?.kind === secretKind ? record.data : {}) as { readonly secret?: string };
      return secret === undefined ? undefined : toKey(Buffer.from(secret, "base64url"));
    } catch (error) {
      if (isLongJobsError(error, "unknown_task")) return undefined;
      throw error;
    }
  }
}

function toKey(secret: Buffer): SigningKey {
  const name = createHash("sha256").update("key name").update(secret).digest("base64url").slice(0, 8);
  return { name, secret };
}

function macOf({ secret }: SigningKey, text: string): Buffer {
  return createHmac("sha256", secret).update(text).digest();
}
