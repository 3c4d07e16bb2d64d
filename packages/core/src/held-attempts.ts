import type { Attempt } from "./attempt.ts";
import type { TaskRecord } from "./task-record.ts";

/** The attempts of one engine, by task. */
export class HeldAttempts {
  readonly #attempts = new Map<string, Attempt>();

  get size(): number {
    return this.#attempts.size;
  }

  get(taskId: string): Attempt | undefined {
    return this.#attempts.get(taskId);
  }

  all(): Attempt[] {
    return [...this.#attempts.values()];
  }

  /** Those whose task is in the store. */
  recorded(): Attempt[] {
    return this.all().filter((attempt) => attempt.recorded && !attempt.ended);
  }

  /** Those whose lease may be relied on. */
  leased(): Attempt[] {
    return this.recorded().filter((attempt) => !attempt.lapsed);
  }

  /** True when the lease in this record is one that this engine keeps alive. */
  holds({ taskId, lease }: TaskRecord): boolean {
    const attempt = this.#attempts.get(taskId);
    return attempt !== undefined && attempt.token === lease?.token && !attempt.ended && !attempt.lapsed;
  }

  hold(attempt: Attempt): void {
    this.#attempts.set(attempt.taskId, attempt);
  }

  /** Forgets an attempt that has ended, unless a later one holds the task by now. */
  release(attempt: Attempt): void {
    if (this.#attempts.get(attempt.taskId) === attempt) this.#attempts.delete(attempt.taskId);
  }
}
