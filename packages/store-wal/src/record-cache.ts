import type { CachedTask } from "./cached-task.ts";

/** Objects, keys and numbers around the text of one task. */
const OVERHEAD_BYTES = 512;

/**
 * The tasks used last, up to a number of bytes. Two generations instead of one exact order: moving an entry to
 * the end of a large Map on every read costs more than the read. When the young half is full it becomes the
 * old one, and what was not used since the last time is forgotten.
 */
export class RecordCache {
  readonly #maxBytes: number;
  #young = new Map<string, CachedTask>();
  #old = new Map<string, CachedTask>();
  #youngBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(taskId: string): CachedTask | undefined {
    const young = this.#young.get(taskId);
    if (young !== undefined) return young;
    const old = this.#old.get(taskId);
    if (old !== undefined) this.set(taskId, old);
    return old;
  }

  set(taskId: string, task: CachedTask): void {
    const bytes = sizeOf(task);
    const before = this.#young.get(taskId);
    const grown = before === undefined ? bytes : bytes - sizeOf(before);
    // Most writes find their task among the young: replacing it there is one step.
    if (before !== undefined && this.#youngBytes + grown <= this.#maxBytes / 2) {
      this.#young.set(taskId, task);
      this.#youngBytes += grown;
      return;
    }
    this.delete(taskId);
    if (bytes > this.#maxBytes) return;
    if (this.#youngBytes + bytes > this.#maxBytes / 2) this.#turn();
    // A task of more than half the room has it alone.
    if (bytes > this.#maxBytes / 2) this.#old.clear();
    this.#young.set(taskId, task);
    this.#youngBytes += bytes;
  }

  delete(taskId: string): void {
    const young = this.#young.get(taskId);
    if (young !== undefined) {
      this.#youngBytes -= sizeOf(young);
      this.#young.delete(taskId);
    }
    this.#old.delete(taskId);
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
    this.#youngBytes = 0;
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngBytes = 0;
  }
}

function sizeOf(task: CachedTask): number {
  return task.bytes + OVERHEAD_BYTES;
}
