import { join } from "node:path";
import { expect, test } from "vitest";
import { CutDisk } from "./support/cut-disk.ts";
import { openStore } from "./support/open-store.ts";
import { quickTempDir } from "./support/temp-dir.ts";
import { allowedLooks, lookAt, randomOf, writeLog } from "./support/write-history.ts";

/** Cuts in a short run; `LONGJOBS_CUTS` asks for more. */
const CUTS = Number(process.env["LONGJOBS_CUTS"] ?? 150);
const CUTS_PER_LOAD = 25;
const SEED = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 1_000_000);

test(
  `a power cut that leaves any sectors of what was not flushed loses no acknowledged state, at this opening and the next`,
  { timeout: 60_000 + CUTS * 200 },
  async () => {
    const root = quickTempDir();
    const random = randomOf(SEED);
    for (let load = 0; load * CUTS_PER_LOAD < CUTS; load += 1) {
      const { operations, history } = await writeLog(join(root, `load-${load}`), random);
      for (let cut = 0; cut < CUTS_PER_LOAD; cut += 1) {
        const cutAt = Math.floor(random() * (operations.length + 1));
        const disk = new CutDisk();
        for (const operation of operations.slice(0, cutAt)) disk.apply(operation);
        const dir = join(root, "cut");
        disk.cut(dir, random);
        for (let opening = 1; opening <= 2; opening += 1) {
          const { store } = await openStore(dir, { segmentBytes: 8_192 });
          for (const [taskId, states] of history) {
            const context = `${taskId} in opening ${opening} after cut ${cut} of load ${load}, ${cutAt} operations, LONGJOBS_SEED=${SEED}`;
            expect(allowedLooks(states, cutAt), context).toContain((await lookAt(store, taskId)).look);
          }
          await store.close();
        }
      }
    }
  },
);
