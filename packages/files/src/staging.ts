import { Readable } from "node:stream";
import { isLongJobsError, LongJobsError } from "@longjobs/core";
import { Upload } from "@tus/server";
import type { StagingAbilities } from "./disk/staging-abilities.ts";
import { StagingStore } from "./disk/staging-store.ts";
import type { ForeignStagingStore } from "./foreign-staging.ts";

/** Where bytes wait until they are published: one face for our own store and for foreign ones. */
export interface Staging {
  readonly abilities: StagingAbilities;
  /** Our own store, where it is one. */
  readonly local: StagingStore | undefined;
  /** @param sizeBytes - `null` while it is not known. */
  create(id: string, sizeBytes: number | null): Promise<void>;
  declareSize(id: string, sizeBytes: number): Promise<void>;
  /** How many bytes are safely there; `undefined` when nothing is known of the upload. */
  stagedBytes(id: string): Promise<number | undefined>;
  /** Stages bytes where the staged ones end; resolves to the new end. */
  write(id: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number>;
  truncate(id: string, sizeBytes: number): Promise<void>;
  /** The staged bytes from `start` on; `undefined` when the store cannot read. */
  read(id: string, start: number): AsyncIterable<Uint8Array> | undefined;
  /** Deletes the bytes; that they are gone already is fine. */
  discard(id: string): Promise<void>;
  /**
   * The ids of what is staged, for a sweep. A foreign store cannot list: of those only what was staged by this process
   * is known, and for the rest the store has an expiry of its own.
   */
  list(): AsyncIterable<string>;
}

/** Gives a store its face. */
export function toStaging(store: StagingStore | ForeignStagingStore): Staging {
  return store instanceof StagingStore ? new LocalStaging(store) : new ForeignStaging(store);
}

class LocalStaging implements Staging {
  readonly local: StagingStore;
  readonly abilities: StagingAbilities;

  constructor(store: StagingStore) {
    this.local = store;
    this.abilities = store.abilities;
  }

  async create(id: string, sizeBytes: number | null): Promise<void> {
    await this.local.create(newUpload(id, sizeBytes));
  }

  declareSize(id: string, sizeBytes: number): Promise<void> {
    return this.local.declareUploadLength(id, sizeBytes);
  }

  async stagedBytes(id: string): Promise<number | undefined> {
    try {
      return await this.local.stagedBytes(id);
    } catch (error) {
      if (isLongJobsError(error, "unknown_transfer")) return undefined;
      throw error;
    }
  }

  write(id: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number> {
    return this.local.write(bytes, id, offset);
  }

  truncate(id: string, sizeBytes: number): Promise<void> {
    return this.local.truncate(id, sizeBytes);
  }

  async *read(id: string, start: number): AsyncIterable<Uint8Array> {
    await using file = await this.local.openStaged(id);
    yield* file.createReadStream({ start, autoClose: false }) as AsyncIterable<Uint8Array>;
  }

  discard(id: string): Promise<void> {
    return this.local.discard(id);
  }

  async *list(): AsyncIterable<string> {
    for await (const { id } of this.local.list()) yield id;
  }
}

class ForeignStaging implements Staging {
  readonly local = undefined;
  readonly abilities: StagingAbilities;
  readonly #store: ForeignStagingStore;
  readonly #ids = new Set<string>();

  constructor(store: ForeignStagingStore) {
    this.#store = store;
    const { smallWrites = false, rangedRead = false, truncate = false } = store.abilities ?? {};
    this.abilities = { smallWrites, rangedRead, truncate: truncate && store.truncate !== undefined };
  }

  async create(id: string, sizeBytes: number | null): Promise<void> {
    this.#ids.add(id);
    await known(this.#store.create(newUpload(id, sizeBytes)));
  }

  async declareSize(id: string, sizeBytes: number): Promise<void> {
    await known(this.#store.declareUploadLength(id, sizeBytes));
  }

  async stagedBytes(id: string): Promise<number | undefined> {
    try {
      return (await this.#store.getUpload(id)).offset;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw storeFailed(error);
    }
  }

  async write(id: string, offset: number, bytes: AsyncIterable<Uint8Array>): Promise<number> {
    return known(this.#store.write(Readable.from(bytes, { objectMode: false }), id, offset));
  }

  async truncate(id: string, sizeBytes: number): Promise<void> {
    await known(this.#store.truncate?.(id, sizeBytes));
  }

  read(id: string, start: number): AsyncIterable<Uint8Array> | undefined {
    return this.#store.read === undefined ? undefined : this.#read(id, start);
  }

  async discard(id: string): Promise<void> {
    try {
      await this.#store.remove(id);
    } catch (error) {
      if (!isGone(error)) throw storeFailed(error);
    }
    this.#ids.delete(id);
  }

  async *list(): AsyncIterable<string> {
    if (this.#store.hasExtension("expiration")) await known(this.#store.deleteExpired());
    yield* this.#ids;
  }

  async *#read(id: string, start: number): AsyncIterable<Uint8Array> {
    const ranged = this.abilities.rangedRead && start > 0;
    const given = await known(this.#store.read?.(id, ranged ? { start } : undefined));
    let skip = ranged ? 0 : start;
    try {
      for await (const piece of given as AsyncIterable<Uint8Array>) {
        if (skip < piece.length) yield piece.subarray(skip);
        skip = Math.max(0, skip - piece.length);
      }
    } catch (error) {
      throw storeFailed(error);
    }
  }
}

function newUpload(id: string, sizeBytes: number | null): Upload {
  return new Upload({ id, offset: 0, ...(sizeBytes === null ? {} : { size: sizeBytes }) });
}

async function known<T>(given: T | Promise<T>): Promise<T> {
  try {
    return await given;
  } catch (error) {
    throw storeFailed(error);
  }
}

/** The stores of tus throw plain objects with a `status_code`. */
function isGone(error: unknown): boolean {
  const { status_code: status } = (error ?? {}) as { readonly status_code?: unknown };
  return status === 404 || status === 410;
}

function storeFailed(error: unknown): Error {
  if (isLongJobsError(error)) return error;
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const options = { retryable: true, cause: error };
  if (code === "ENOSPC" || code === "EDQUOT")
    return new LongJobsError("no_space", "The staging store is full.", options);
  return new LongJobsError(
    "store_unavailable",
    "The staging store failed; what it has stored is kept.",
    options,
  );
}
