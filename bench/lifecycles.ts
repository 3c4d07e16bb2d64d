import { monitorEventLoopDelay } from "node:perf_hooks";
import { progressPatches, sampleRecord, terminalPatch } from "./sample-record.ts";
import type { OpenSubject } from "./subject.ts";

/** What a run of lifecycles measures. */
export interface LifecycleFigures {
  readonly perSecond: number;
  /** The longest time that the event loop did not turn, in milliseconds. */
  readonly stallMs: number;
}

/**
 * Runs lifecycles, `concurrency` at once: create, get, three updates and a completion of one record of about
 * 600 bytes. Each operation starts on its own turn of the event loop, as requests do.
 */
export async function runLifecycles(
  subject: OpenSubject,
  lifecycles: number,
  concurrency: number,
): Promise<LifecycleFigures> {
  const loop = monitorEventLoopDelay({ resolution: 1 });
  let left = lifecycles;
  const worker = async (): Promise<void> => {
    while ((left -= 1) >= 0) await runLifecycle(subject);
  };
  loop.enable();
  const startMs = performance.now();
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsedMs = performance.now() - startMs;
  loop.disable();
  // The histogram counts from one timer to the next, which is one millisecond when nothing is in the way.
  return { perSecond: (lifecycles / elapsedMs) * 1_000, stallMs: Math.max(0, loop.max / 1e6 - 1) };
}

/** One lifecycle; resolves to the id of the finished task. */
export async function runLifecycle(subject: OpenSubject): Promise<string> {
  const record = sampleRecord(crypto.randomUUID());
  await turn();
  await subject.create(record);
  await turn();
  await subject.get(record.taskId);
  let { version } = record;
  for (const patch of [...progressPatches, terminalPatch]) {
    await turn();
    version = await subject.update(record.taskId, patch, version);
  }
  return record.taskId;
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
