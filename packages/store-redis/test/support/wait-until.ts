import { setTimeout as delay } from "node:timers/promises";

/** Waits for a fact, looking every few milliseconds; fails with a message when it does not come true. */
export async function waitUntil(
  fact: () => boolean | Promise<boolean>,
  message: string,
  deadlineMs = 20_000,
): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await fact())) {
    if (performance.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${message}`);
    await delay(5);
  }
}
