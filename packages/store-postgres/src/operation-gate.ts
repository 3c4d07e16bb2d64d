import { storeErrors } from "@longjobs/core";

/** Lets calls in until it is closed, and waits then for those that are under way (C18). */
export class OperationGate {
  #count = 0;
  #isClosed = false;
  #onIdle: (() => void) | undefined;

  /** @throws `store_closed` */
  assertOpen(): void {
    if (this.#isClosed) throw storeErrors.storeClosed();
  }

  async run<T>(operation: () => Promise<T>): Promise<T> {
    this.assertOpen();
    this.#count += 1;
    try {
      return await operation();
    } finally {
      this.#count -= 1;
      if (this.#count === 0) this.#onIdle?.();
    }
  }

  /** Resolves when no call is under way any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#count > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }
}
