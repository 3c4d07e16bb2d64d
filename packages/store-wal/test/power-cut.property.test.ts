import { join } from "node:path";
import { expect, test } from "vitest";
import { CutDisk, type Random } from "./support/cut-disk.ts";
import { openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles } from "./support/simulated-disk.ts";
import { quickTempDir } from "./support/temp-dir.ts";
import type { FileOperation } from "./support/wrapped-files.ts";

/** Cuts in a short run; `LONGJOBS_CUTS` asks for more. */
const CUTS = Number(process.env["LONGJOBS_CUTS"] ?? 150);
const CUTS_PER_LOAD = 25;
const SEED = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 1_000_000);

/** A state of a task: when its write began, and when it was acknowledged, in operations. */
interface State {
  readonly look: string;
  readonly beganAt: number;
  acknowledgedAt: number;
}

interface Load {
  readonly operations: readonly FileOperation[];
  readonly history: ReadonlyMap<string, readonly State[]>;
}

function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

/** Writes of several tasks at once, small and large, over several openings, with small files and compaction. */
async function runLoad(dir: string, random: Random): Promise<Load> {
  const { files, operations } = recordedFiles();
  const history = new Map<string, State[]>();
  const padding = random() < 0.5 ? {} : { scope: "y".repeat(505), requestState: "q".repeat(500) };
  const reserveBytes = random() < 0.3 ? 65_536 : null;
  for (let opening = 1 + Math.floor(random() * 3); opening > 0; opening -= 1) {
    const { store } = await openStore(dir, {
      files,
      reserveBytes,
      segmentBytes: random() < 0.5 ? 8_192 : 20_480,
      compactionFloorBytes: 2_500,
      cacheBytes: random() < 0.5 ? 0 : 20_000,
    });
    for (let round = 0; round < 40; round += 1) {
      const ids = new Set(
        Array.from({ length: 1 + Math.floor(random() * 5) }, () => `t${Math.floor(random() * 10)}`),
      );
      const writes = [...ids].map(async (taskId) => {
        const states = history.get(taskId) ?? [];
        history.set(taskId, states);
        const version = states.length;
        const result = random() < 0.3 ? { result: bigResult(Math.floor(random() * 3_000)) } : {};
        const fields = { statusMessage: `write ${version} of ${opening}`, ...padding, ...result };
        const state = {
          look: lookOf(version + 1, fields.statusMessage),
          beganAt: operations.length,
          acknowledgedAt: Infinity,
        };
        states.push(state);
        await (version === 0 ? store.create(record(taskId, fields)) : store.update(taskId, fields, version));
        state.acknowledgedAt = operations.length;
      });
      await Promise.all(writes);
    }
    await store.close();
  }
  return { operations, history };
}

function lookOf(version: number, statusMessage: string | undefined): string {
  return `${version}: ${statusMessage}`;
}

/** What may be found of a task after a cut: the last state that was acknowledged, or one that was being written. */
function allowed(states: readonly State[], cutAt: number): string[] {
  const last = states.findLastIndex(({ acknowledgedAt }) => acknowledgedAt <= cutAt);
  const looks = states
    .slice(Math.max(last, 0))
    .filter(({ beganAt }) => beganAt <= cutAt)
    .map(({ look }) => look);
  return last < 0 ? ["absent", ...looks] : looks;
}

test(
  `a power cut that leaves any sectors of what was not flushed loses no acknowledged state, at this opening and the next`,
  { timeout: 60_000 + CUTS * 200 },
  async () => {
    const root = quickTempDir();
    const random = randomOf(SEED);
    for (let load = 0; load * CUTS_PER_LOAD < CUTS; load += 1) {
      const { operations, history } = await runLoad(join(root, `load-${load}`), random);
      for (let cut = 0; cut < CUTS_PER_LOAD; cut += 1) {
        const cutAt = Math.floor(random() * (operations.length + 1));
        const disk = new CutDisk();
        for (const operation of operations.slice(0, cutAt)) disk.apply(operation);
        const dir = join(root, "cut");
        disk.cut(dir, random);
        for (let opening = 1; opening <= 2; opening += 1) {
          const { store } = await openStore(dir, { segmentBytes: 8_192 });
          for (const [taskId, states] of history) {
            const found = await store.get(taskId).catch((error: unknown) => String(error));
            const look =
              typeof found === "object" ? lookOf(found.version, found.statusMessage) : (found ?? "absent");
            const context = `${taskId} in opening ${opening} after cut ${cut} of load ${load}, ${cutAt} operations, LONGJOBS_SEED=${SEED}`;
            expect(allowed(states, cutAt), context).toContain(look);
          }
          await store.close();
        }
      }
    }
  },
);
