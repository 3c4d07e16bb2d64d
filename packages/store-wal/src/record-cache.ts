import type { TaskRecord } from "@longjobs/core";
import type { TaskField } from "./task-fields.ts";

/** A task in memory, as it was last flushed. */
export interface CachedTask {
  /** Absent while a large field has not been read. Frozen: served as it is. */
  readonly record: TaskRecord | undefined;
  readonly fields: readonly TaskField[];
  /** Bytes of JSON text that `record` and the small fields stand for. */
  readonly bytes: number;
}

/** Objects, keys and numbers around the text of one task. */
const OVERHEAD_BYTES = 512;

/** The tasks used last, up to a number of bytes. */
export class RecordCache {
  readonly #maxBytes: number;
  /** In the order of last use. */
  readonly #tasks = new Map<string, CachedTask>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(taskId: string): CachedTask | undefined {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return undefined;
    this.#tasks.delete(taskId);
    this.#tasks.set(taskId, task);
    return task;
  }

  set(taskId: string, task: CachedTask): void {
    this.delete(taskId);
    const bytes = task.bytes + OVERHEAD_BYTES;
    if (bytes > this.#maxBytes) return;
    this.#tasks.set(taskId, task);
    this.#bytes += bytes;
    for (const oldest of this.#tasks.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(taskId: string): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#tasks.delete(taskId);
    this.#bytes -= task.bytes + OVERHEAD_BYTES;
  }

  clear(): void {
    this.#tasks.clear();
    this.#bytes = 0;
  }
}
