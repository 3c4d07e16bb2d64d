import { monitorEventLoopDelay } from "node:perf_hooks";
import { WalTaskStore } from "@longjobs/store-wal";
import { fillWithFinishedTasks } from "../fill.ts";
import { runLifecycles } from "../lifecycles.ts";
import { inFolder, summarise } from "../measure.ts";
import { toRatio, type BenchGroup } from "../row.ts";

/**
 * How the log's throughput and stalls change with the number of finished tasks it holds. The empty store is measured
 * again beside every size, so that a drifting machine drifts for both.
 */
export const growth: BenchGroup = async function* ({ full, progress }) {
  for (const tasks of full ? [1_000, 10_000, 100_000, 300_000] : [10_000, 100_000]) {
    progress(`throughput with ${tasks} finished tasks`);
    yield await inFolder(async (filledDir) =>
      inFolder(async (emptyDir) => {
        const filled = await WalTaskStore.open({ dir: filledDir });
        const empty = await WalTaskStore.open({ dir: emptyDir });
        await fillWithFinishedTasks(filled, tasks, 600);
        const values = { filled: [] as number[], empty: [] as number[], stall: [] as number[] };
        for (let round = 0; round < (full ? 7 : 3); round += 1) {
          const lifecycles = full ? 10_000 : 4_000;
          values.empty.push((await runLifecycles(empty, lifecycles, 64)).perSecond);
          const { perSecond, stallMs } = await runLifecycles(filled, lifecycles, 64);
          values.filled.push(perSecond);
          values.stall.push(stallMs);
        }
        await Promise.all([filled.close(), empty.close()]);
        const figures = {
          "longjobs log, empty": summarise(values.empty),
          [`longjobs log, ${tasks} tasks`]: summarise(values.filled),
        };
        const ratio = summarise(values.filled).median / summarise(values.empty).median;
        const bars = tasks === 100_000 ? [toRatio("with 100,000 tasks / empty", ratio, "at least", 0.9)] : [];
        return {
          group: "growth",
          row: `durable lifecycles with ${tasks} finished tasks`,
          unit: "lifecycles/s",
          figures,
          ratios: bars,
        };
      }),
    );
    progress(`compaction with ${tasks} tasks`);
    yield await inFolder(async (dir) => {
      const store = await WalTaskStore.open({ dir });
      const ids = await fillWithFinishedTasks(store, tasks, 600);
      const stallMs = await stallWhileCompacting(store, ids);
      await store.close();
      const bars = tasks === 100_000 ? [toRatio("longest stall", stallMs, "at most", 15)] : [];
      return {
        group: "growth",
        row: `longest stall while compacting with ${tasks} tasks`,
        unit: "ms",
        figures: { "longjobs log": summarise([stallMs]) },
        ratios: bars,
      };
    });
  }
};

/** Rewrites every task, so that all of the old log is garbage, and watches the event loop until it is gone. */
async function stallWhileCompacting(store: WalTaskStore, ids: ReadonlyMap<string, number>): Promise<number> {
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const pending = [...ids];
  loop.enable();
  const worker = async (): Promise<void> => {
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      await store.update(next[0], { statusMessage: "Read." }, next[1]);
    }
  };
  await Promise.all(Array.from({ length: 64 }, worker));
  loop.disable();
  return Math.max(0, loop.max / 1e6 - 1);
}
