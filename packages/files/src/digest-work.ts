import { isLongJobsError, reportBackgroundError, type ErrorListener } from "@longjobs/core";
import type { PinnedFile } from "./disk/pinned-file.ts";

/** How far the digest of a file has come. */
export interface DigestProgress {
  readonly doneBytes: number;
  readonly sizeBytes: number;
}

/** Computes the digests of large files in the background, one per transfer, while their clients read. */
export class DigestWork {
  readonly #running = new Map<string, { progress: DigestProgress; readonly done: Promise<void> }>();
  readonly #closing: AbortSignal;
  readonly #onError: ErrorListener | undefined;

  constructor(closing: AbortSignal, onError: ErrorListener | undefined) {
    this.#closing = closing;
    this.#onError = onError;
  }

  /** Digests that are being computed. */
  get size(): number {
    return this.#running.size;
  }

  /** How far it is; `undefined` when nothing is being computed for this transfer. */
  progressOf(transferId: string): DigestProgress | undefined {
    return this.#running.get(transferId)?.progress;
  }

  /** Starts, unless it is under way. The file is closed at the end; `keep` gets the digest. */
  start(transferId: string, open: () => Promise<PinnedFile>, keep: (sha256: string) => Promise<void>): void {
    if (this.#running.has(transferId) || this.#closing.aborted) return;
    const entry = { progress: { doneBytes: 0, sizeBytes: 0 }, done: Promise.resolve() };
    const compute = async (): Promise<void> => {
      await using file = await open();
      const onProgress = (doneBytes: number, sizeBytes: number): void => {
        entry.progress = { doneBytes, sizeBytes };
      };
      await keep(await file.digest({ signal: this.#closing, onProgress }));
    };
    entry.done = compute()
      .catch((error: unknown) => this.#report(error))
      .finally(() => this.#running.delete(transferId));
    this.#running.set(transferId, entry);
  }

  /** Resolves when nothing is being computed any more. */
  async settled(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** A file that changed, or a transfer that ended, is told to whoever reads next; a shutdown is no failure. */
  #report(error: unknown): void {
    const expected = ["source_changed", "unknown_transfer", "unknown_task", "path_not_allowed"];
    if (this.#closing.aborted || expected.some((code) => isLongJobsError(error, code))) return;
    reportBackgroundError(error, this.#onError);
  }
}
