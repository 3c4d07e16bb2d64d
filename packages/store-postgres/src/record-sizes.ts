/** Tasks whose size is remembered; some hundred bytes each. */
const MAX_TASKS = 10_000;

/**
 * How large the records are that this store saw last: by it an update knows that its patch fits, without a word to the
 * server. A size belongs to a version, so that one which is out of date is no size at all.
 */
export class RecordSizes {
  /** The oldest first. */
  readonly #sizes = new Map<string, { readonly version: number; readonly bytes: number }>();

  /** The task at this version has at most so many bytes of JSON text. */
  saw(taskId: string, version: number, bytes: number): void {
    this.#sizes.delete(taskId);
    this.#sizes.set(taskId, { version, bytes });
    if (this.#sizes.size > MAX_TASKS) this.#sizes.delete(this.#sizes.keys().next().value ?? "");
  }

  /** The most that the task can have at this version; `undefined` when it was not seen. */
  find(taskId: string, version: number): number | undefined {
    const size = this.#sizes.get(taskId);
    return size?.version === version ? size.bytes : undefined;
  }

  clear(): void {
    this.#sizes.clear();
  }
}
