import { join } from "node:path";
import { expect, test } from "vitest";
import { CutDisk, type Random } from "./support/cut-disk.ts";
import { openStore } from "./support/open-store.ts";
import { recordedFiles } from "./support/simulated-disk.ts";
import { quickTempDir } from "./support/temp-dir.ts";
import { isSegment, type FileOperation } from "./support/wrapped-files.ts";
import {
  allowedLooks,
  lookAt,
  randomOf,
  smallFiles,
  writeLog,
  writeRounds,
  type TaskState,
  type WriteHistory,
} from "./support/write-history.ts";

/** Crashed logs in a short run; `LONGJOBS_CUTS` asks for more. */
const CRASHES = Math.ceil(Number(process.env["LONGJOBS_CUTS"] ?? 150) / 10);
const CRASHES_PER_LOAD = 6;
const SEED = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 1_000_000);

/** Steps behind the opening at which a life may end, besides all of the opening's own. */
const LATER_STEPS = 8;

/** Openings in a row that are cut off. */
const MAX_DEPTH = 3;

/** What may be found of each task. */
type Allowed = ReadonlyMap<string, readonly string[]>;

test(
  `an opening that is cut off at any step, by a kill or by the power, loses no acknowledged state and none that a reader saw`,
  { timeout: 60_000 + CRASHES * 2_000 },
  async () => {
    const root = quickTempDir();
    const random = randomOf(SEED);
    for (let load = 0; load * CRASHES_PER_LOAD < CRASHES; load += 1) {
      // Without fsync a killed process leaves all of its writes unflushed; a power cut would leave nothing to rely on.
      const fsync = random() < 0.7;
      const first = await writeLog(join(root, `load-${load}`), random, fsync);
      for (let crash = 0; crash < CRASHES_PER_LOAD; crash += 1) {
        const endedAt = endOf(first.operations, random);
        const disk = new CutDisk();
        for (const operation of first.operations.slice(0, endedAt)) disk.apply(operation);
        const dir = join(root, "crashed");
        if (fsync && random() < 0.5) disk.cut(dir, random);
        else disk.kill(dir);
        const allowed = new Map(
          [...first.history].map(([id, states]) => [id, allowedLooks(states, endedAt)]),
        );
        const context = `after crash ${crash} of load ${load}, LONGJOBS_SEED=${SEED}`;
        await cutOpening({ dir, disk, allowed, fsync, random, context });
      }
    }
  },
);

/** Mostly behind a write that is not flushed yet: then the opening has something to settle. */
function endOf(operations: readonly FileOperation[], random: Random): number {
  const steps = operations.map((_, step) => step + 1);
  const unflushed = steps.filter((step) => isWrite(operations[step - 1]));
  const chosen = random() < 0.8 ? unflushed : steps;
  return chosen[Math.floor(random() * chosen.length)] ?? 0;
}

function isWrite(operation: FileOperation | undefined): boolean {
  return operation?.name === "file.write" && isSegment(operation.path);
}

interface Crash {
  /** Where the crashed log lies. */
  readonly dir: string;
  /** The same log, with what of it was never flushed. */
  readonly disk: CutDisk;
  readonly allowed: Allowed;
  /** Whether what was acknowledged had been flushed. */
  readonly fsync: boolean;
  readonly random: Random;
  readonly context: string;
}

/** Opens what a crash left, goes on writing, and looks what is there when that life ends at each of its steps. */
async function cutOpening(
  { dir, disk, allowed, fsync, random, context }: Crash,
  depth: number = 1,
): Promise<void> {
  const { files, operations } = recordedFiles();
  const { store } = await openStore(dir, { files, ...smallFiles(random) });
  const openedAt = operations.length;
  const history: WriteHistory = new Map();
  for (const [taskId, looks] of allowed) {
    const seen = await lookAt(store, taskId);
    expect(looks, `${taskId} ${context}`).toContain(seen.look);
    // From here on it is the truth: somebody saw it.
    history.set(taskId, [{ ...seen, beganAt: openedAt, acknowledgedAt: openedAt } satisfies TaskState]);
  }
  await writeRounds(store, 10, { operations, history, random, padding: {} });
  await store.close();

  const opening = Array.from({ length: openedAt + 1 }, (_, step) => step);
  const behind = operations.length - openedAt;
  const later = Array.from({ length: LATER_STEPS }, () => openedAt + 1 + Math.floor(random() * behind));
  for (const step of [...opening, ...later]) {
    const isOpened = step >= openedAt;
    const trial = disk.clone();
    for (const operation of operations.slice(0, step)) trial.apply(operation);
    // Until an opening has succeeded nobody promised anything about what was never flushed.
    const how = random() < 0.4 || (!fsync && !isOpened) ? "kill" : "cut";
    const left = `${dir}-left`;
    if (how === "kill") trial.kill(left);
    else trial.cut(left, random);
    const last = operations[step - 1];
    const next: Crash = {
      dir: left,
      disk: trial,
      allowed: isOpened
        ? new Map([...history].map(([id, states]) => [id, allowedLooks(states, step)]))
        : allowed,
      fsync: fsync || isOpened,
      random,
      context: `after a ${how} at step ${step} (${openedAt} are the opening; last ${last?.name} ${last?.path}), ${context}`,
    };
    // Sometimes that opening is cut off as well.
    if (depth < MAX_DEPTH && random() < 0.015) await cutOpening(next, depth + 1);
    else await openTwice(next);
  }
}

async function openTwice({ dir, allowed, context }: Crash): Promise<void> {
  for (let opening = 1; opening <= 2; opening += 1) {
    const { store } = await openStore(dir, { segmentBytes: 8_192 });
    for (const [taskId, looks] of allowed) {
      const { look } = await lookAt(store, taskId);
      expect(looks, `${taskId} in opening ${opening} ${context}`).toContain(look);
    }
    await store.close();
  }
}
