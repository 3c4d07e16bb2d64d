import { join } from "node:path";
import { errnoOf, writeFully, type FileLayer, type OpenFile } from "./file-layer.ts";
import { encodeLock, lockName, type LockContent } from "./lock-file.ts";
import type { CleanEnd } from "./replay-log.ts";

/** A fifth of the time after which others take a silent holder for dead. */
const HEARTBEAT_MS = 2_000;

interface LockParts {
  readonly files: FileLayer;
  readonly dir: string;
  readonly epoch: number;
  readonly file: OpenFile;
  readonly content: LockContent;
}

/** The ownership of a directory, from its acquisition to its end. */
export class DirectoryLock {
  readonly epoch: number;
  readonly #files: FileLayer;
  readonly #file: OpenFile;
  readonly #path: string;
  readonly #nextPath: string;
  #content: LockContent;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> | undefined;
  #onTakenOver: (() => void) | undefined;

  constructor({ files, dir, epoch, file, content }: LockParts) {
    this.epoch = epoch;
    this.#files = files;
    this.#file = file;
    this.#content = content;
    this.#path = join(dir, lockName(epoch));
    this.#nextPath = join(dir, lockName(epoch + 1));
  }

  /**
   * Whether somebody took this holder for dead and owns the directory now. Later owners remove old locks: one that is
   * missing has been taken over long ago, or went with its directory.
   */
  isTakenOver(): boolean {
    return this.#files.exists(this.#nextPath) || !this.#files.exists(this.#path);
  }

  /** Calls back, at the latest with the next heartbeat, when the directory has another owner. */
  whenTakenOver(onTakenOver: () => void): void {
    this.#onTakenOver = onTakenOver;
  }

  /** Shows from now on that the holder lives. The timer keeps no process alive. */
  startHeartbeat(onError: (error: unknown) => void): void {
    this.#timer = setInterval(() => {
      if (this.isTakenOver()) this.#onTakenOver?.();
      // One at a time: a slow disk must not pile up writes.
      this.#beating ??= this.#beat()
        .catch(onError)
        .finally(() => (this.#beating = undefined));
    }, HEARTBEAT_MS);
    this.#timer.unref();
  }

  /** Marks the lock closed, with where the log ends, and gives the directory up. */
  async close(end: CleanEnd | undefined): Promise<void> {
    clearInterval(this.#timer);
    await this.#beating;
    try {
      if (this.isTakenOver()) return;
      this.#content = { ...this.#content, state: "closed", ...(end === undefined ? {} : { end }) };
      await writeFully(this.#file, encodeLock(this.#content), 0);
      await this.#file.flush();
    } finally {
      await this.#file.close();
    }
  }

  async #beat(): Promise<void> {
    this.#content = { ...this.#content, counter: this.#content.counter + 1 };
    await writeFully(this.#file, encodeLock(this.#content), 0);
    // Under the path there may be another directory by now, whose lock has the same name.
    if (!(await this.#isOwn())) this.#onTakenOver?.();
  }

  async #isOwn(): Promise<boolean> {
    try {
      const file = await this.#files.open(this.#path, "r");
      try {
        return (await file.identity()) === (await this.#file.identity());
      } finally {
        await file.close();
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw error;
    }
  }
}
