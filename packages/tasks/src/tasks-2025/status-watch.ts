import { isTerminal, toTask2025, type DetailedTask, type TaskLifecycle } from "@longjobs/core";

type Send = (notification: object) => Promise<void>;

/** What one connection was told of one task. */
interface Watch {
  readonly send: Send;
  told: string;
  latest: DetailedTask | undefined;
  ready: boolean;
}

/**
 * Sends `notifications/tasks/status` of revision 2025-11-25 to the connection that made the task. They are a hint:
 * clients poll all the same, so one that cannot be sent ends them.
 */
export class StatusWatch {
  readonly #lifecycle: TaskLifecycle;
  readonly #watches = new Map<string, Watch>();
  #unsubscribe: (() => void) | undefined;

  constructor(lifecycle: TaskLifecycle) {
    this.#lifecycle = lifecycle;
  }

  /** Until the task has ended. Its handle is sent first: the first notification waits for one turn. */
  watch(taskId: string, send: Send): void {
    const watch: Watch = { send, told: "working", latest: undefined, ready: false };
    this.#watches.set(taskId, watch);
    this.#unsubscribe ??= this.#lifecycle.onTaskChanged((task) => this.#changed(task));
    setTimeout(() => {
      watch.ready = true;
      if (watch.latest !== undefined) this.#tell(watch, watch.latest);
    }, 0);
  }

  #changed(task: DetailedTask): void {
    const watch = this.#watches.get(task.taskId);
    if (watch === undefined) return;
    if (isTerminal(task.status)) this.#forget(task.taskId);
    if (watch.ready) this.#tell(watch, task);
    else watch.latest = task;
  }

  /** What clients see has changed: a longer lease or a later expiry is no news. */
  #tell(watch: Watch, task: DetailedTask): void {
    const params = toTask2025(task);
    const news = `${params.status}${params.statusMessage ?? ""}`;
    if (news === watch.told) return;
    watch.told = news;
    watch.send({ method: "notifications/tasks/status", params }).catch(() => this.#forget(task.taskId));
  }

  #forget(taskId: string): void {
    this.#watches.delete(taskId);
    if (this.#watches.size > 0) return;
    this.#unsubscribe?.();
    this.#unsubscribe = undefined;
  }
}
