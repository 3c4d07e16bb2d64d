/*
 * A real process with a real store, run from the built files. It does what its parent says and tells what it
 * has done; the parent kills it whenever it likes.
 */
import { isLongJobsError } from "@longjobs/core";
import type { WalTaskStore as Store } from "../../src/index.ts";
import type { Ask, Tell } from "./messages.ts";
import { record } from "../support/records.ts";

const built = new URL("../../dist/index.js", import.meta.url);
const { WalTaskStore } = (await import(built.href)) as { WalTaskStore: typeof Store };
let store: Store | undefined;

const tell = (message: Tell): void => void process.send?.(message);

process.on("message", (ask: Ask) => {
  void answer(ask).catch((error: unknown) =>
    tell({
      told: "failed",
      code: isLongJobsError(error) ? error.code : String(error),
      partial: partialOf(error),
    }),
  );
});
tell({ told: "ready" });

async function answer(ask: Ask): Promise<void> {
  switch (ask.ask) {
    case "open":
      store = await WalTaskStore.open({ reserveBytes: null, ...ask.options });
      return tell({ told: "opened" });
    case "create":
      await store?.create(record(ask.taskId, ask.fields));
      return tell({ told: "created", taskId: ask.taskId });
    case "load":
      return load(ask.prefix, ask.writers);
    case "close":
      await store?.close();
      return tell({ told: "closed" });
  }
}

/** Tells, and waits until the message has left this process: a kill takes what still waits to be sent. */
const tellForSure = (message: Tell): Promise<void> =>
  new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)));
  });

/** Writes without end, and tells of each acknowledged version before the next write of its task. */
async function load(prefix: string, writers: number): Promise<void> {
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const taskId = `${prefix}-${writer}`;
      await store?.create(record(taskId));
      await tellForSure({ told: "wrote", taskId, version: 1 });
      for (let version = 1; ; version += 1) {
        // Every few versions a large field changes, so that segments fill and compaction has work.
        const result = version % 5 === 0 ? { result: { text: `${version}`.padEnd(3_000, "x") } } : {};
        await store?.update(taskId, { progress: { done: version + 1 }, ...result }, version);
        await tellForSure({ told: "wrote", taskId, version: version + 1 });
      }
    }),
  );
}

function partialOf(error: unknown): unknown {
  return isLongJobsError(error) ? error.partial : undefined;
}
