/**
 * The `TaskMessageQueue` of SDK v1, as it is met by shape. What comes out is what went in; it is `never` here so that it fits
 * the SDK's own message types, which are not named.
 */
export interface SdkTaskMessageQueue {
  enqueue(taskId: string, message: object, sessionId?: string, maxSize?: number): Promise<void>;
  dequeue(taskId: string, sessionId?: string): Promise<undefined>;
  dequeueAll(taskId: string, sessionId?: string): Promise<never[]>;
}

/**
 * What the SDK holds back until a client asks for the result of a task. In memory on purpose: a question carries a
 * number of this process, and delivered by another its answer would be taken for that of another question.
 */
export class SdkMessages implements SdkTaskMessageQueue {
  readonly #queues = new Map<string, object[]>();
  readonly #maySee: (taskId: string, sessionId: string | undefined) => boolean;

  /** @param maySee - SDK 1.29 takes messages out before it looks whose task it is. */
  constructor(maySee: (taskId: string, sessionId: string | undefined) => boolean) {
    this.#maySee = maySee;
  }

  async enqueue(
    taskId: string,
    message: object,
    _sessionId?: string,
    maxSize: number = Infinity,
  ): Promise<void> {
    const queue = this.#queues.get(taskId) ?? [];
    if (queue.length >= maxSize)
      throw new Error(`The task has ${queue.length} messages that nobody fetched.`);
    this.#queues.set(taskId, [...queue, message]);
  }

  async dequeue(taskId: string, sessionId?: string): Promise<undefined> {
    if (!this.#maySee(taskId, sessionId)) return undefined;
    const [first, ...rest] = this.#queues.get(taskId) ?? [];
    if (rest.length > 0) this.#queues.set(taskId, rest);
    else this.#queues.delete(taskId);
    return first as undefined;
  }

  async dequeueAll(taskId: string, sessionId?: string): Promise<never[]> {
    if (!this.#maySee(taskId, sessionId)) return [];
    const all = this.#queues.get(taskId) ?? [];
    this.#queues.delete(taskId);
    return all as never[];
  }
}
