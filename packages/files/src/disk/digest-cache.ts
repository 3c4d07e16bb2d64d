import { reportBackgroundError } from "@longjobs/core";

/** Options of a wait for a digest. */
export interface DigestOptions {
  /** Ends the wait; the computation ends with the last wait for it. */
  readonly signal?: AbortSignal;
  /** Called while it is computed, if it has to be. */
  readonly onProgress?: (doneBytes: number, sizeBytes: number) => void;
}

/** Computes a digest; stops when its signal aborts. */
export type ComputeDigest = (signal: AbortSignal, onProgress: (doneBytes: number) => void) => Promise<string>;

interface Computation {
  readonly digest: Promise<string>;
  readonly ending: AbortController;
  readonly listeners: Set<(doneBytes: number) => void>;
  waits: number;
}

/** The digests of this many contents are kept: a transfer that reads a file in a thousand calls hashes it once. */
const maxKnown = 1000;

/** Digests by the pin of the content: each is computed once, however many ask, and then known. */
export class DigestCache {
  /** In order of use. */
  readonly #known = new Map<string, string>();
  readonly #running = new Map<string, Computation>();

  /** Waits for the digest of the content with this key. */
  async digest(
    key: string,
    sizeBytes: number,
    compute: ComputeDigest,
    { signal, onProgress }: DigestOptions = {},
  ): Promise<string> {
    signal?.throwIfAborted();
    const known = this.#known.get(key);
    if (known !== undefined) return this.#keep(key, known);
    const computation = this.#running.get(key) ?? this.#start(key, compute);
    const listener = (doneBytes: number): void => onProgress?.(doneBytes, sizeBytes);
    computation.listeners.add(listener);
    computation.waits += 1;
    try {
      return await untilAborted(computation.digest, signal);
    } finally {
      computation.listeners.delete(listener);
      computation.waits -= 1;
      if (computation.waits === 0) this.#end(key, computation);
    }
  }

  #start(key: string, compute: ComputeDigest): Computation {
    const ending = new AbortController();
    const listeners: Computation["listeners"] = new Set();
    const digest = compute(ending.signal, (doneBytes) => {
      for (const listener of listeners) notify(listener, doneBytes);
    }).then((value) => this.#keep(key, value));
    // Each wait gets the failure; when the last one has left, there is nobody to get it.
    digest.catch(() => undefined);
    const computation = { digest, ending, listeners, waits: 0 };
    this.#running.set(key, computation);
    return computation;
  }

  /** Nobody waits any more: it is done, or it stops, and whoever asks next starts a new one. */
  #end(key: string, computation: Computation): void {
    if (this.#running.get(key) === computation) this.#running.delete(key);
    computation.ending.abort();
  }

  #keep(key: string, digest: string): string {
    this.#known.delete(key);
    this.#known.set(key, digest);
    const [oldest] = this.#known.keys();
    if (this.#known.size > maxKnown && oldest !== undefined) this.#known.delete(oldest);
    return digest;
  }
}

/** A listener that throws must not end what others wait for. */
function notify(listener: (doneBytes: number) => void, doneBytes: number): void {
  try {
    listener(doneBytes);
  } catch (error) {
    reportBackgroundError(error);
  }
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
