/**
 * One write in flight per task: later ones wait here, before they look at its version, in the order they
 * came. A task without writes has no lane.
 */
export class TaskLanes {
  readonly #lanes = new Map<string, (() => void)[] | null>();

  /** `undefined` when the lane is free and now the caller's; else a promise of it. */
  enter(taskId: string): Promise<void> | undefined {
    const waiting = this.#lanes.get(taskId);
    if (waiting === undefined) {
      this.#lanes.set(taskId, null);
      return undefined;
    }
    return new Promise((resolve) => {
      if (waiting === null) this.#lanes.set(taskId, [resolve]);
      else waiting.push(resolve);
    });
  }

  /** Hands the lane to the next writer. */
  leave(taskId: string): void {
    const next = this.#lanes.get(taskId)?.shift();
    if (next === undefined) this.#lanes.delete(taskId);
    else next();
  }
}
