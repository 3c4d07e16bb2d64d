/** Lets timers and input run once. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}

/** Waits until `fact` holds; after `deadlineMs` fails with what was awaited. */
export async function waitFor(
  fact: () => Promise<boolean> | boolean,
  awaited: string,
  deadlineMs = 5_000,
): Promise<void> {
  const endAtMs = performance.now() + deadlineMs;
  while (!(await fact())) {
    if (performance.now() >= endAtMs) throw new Error(`${awaited}: not within ${deadlineMs} ms.`);
    await nextTurn();
  }
}

/** The outcome of `work`, or a failure when it has not settled after `deadlineMs`. */
export async function withDeadline<T>(work: Promise<T>, deadlineMs: number, awaited: string): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${awaited}: not within ${deadlineMs} ms.`)), deadlineMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
