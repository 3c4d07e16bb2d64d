import type { WalTaskStore } from "../../src/index.ts";
import type { Random } from "./cut-disk.ts";
import { openStore } from "./open-store.ts";
import { bigResult, record } from "./records.ts";
import { recordedFiles } from "./simulated-disk.ts";
import type { FileOperation } from "./wrapped-files.ts";

/** A state of a task: when its write began, and when it was acknowledged, in operations. */
export interface TaskState {
  readonly look: string;
  readonly version: number;
  readonly beganAt: number;
  acknowledgedAt: number;
}

/** The states of each task, in their order. */
export type WriteHistory = Map<string, TaskState[]>;

/** What was done to the disk, and what the writers of tasks were told meanwhile. */
export interface WrittenLog {
  readonly operations: readonly FileOperation[];
  readonly history: WriteHistory;
}

/** Numbers that look random and come again with the same seed. */
export function randomOf(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

/** Writes of several tasks at once, small and large, over several openings, with small files and compaction. */
export async function writeLog(dir: string, random: Random, fsync = true): Promise<WrittenLog> {
  const { files, operations } = recordedFiles();
  const history: WriteHistory = new Map();
  const padding = random() < 0.5 ? {} : { scope: "y".repeat(505), requestState: "q".repeat(500) };
  const reserveBytes = random() < 0.3 ? 65_536 : null;
  for (let opening = 1 + Math.floor(random() * 3); opening > 0; opening -= 1) {
    const { store } = await openStore(dir, { files, fsync, reserveBytes, ...smallFiles(random) });
    await writeRounds(store, 40, { operations, history, random, padding });
    await store.close();
  }
  return { operations, history };
}

/** Options that make every step of a log happen soon. */
export function smallFiles(random: Random): {
  segmentBytes: number;
  compactionFloorBytes: number;
  cacheBytes: number;
} {
  return {
    segmentBytes: random() < 0.5 ? 8_192 : 20_480,
    compactionFloorBytes: 2_500,
    cacheBytes: random() < 0.5 ? 0 : 20_000,
  };
}

/** Writes some tasks at once, again and again, and notes each write. */
export async function writeRounds(
  store: WalTaskStore,
  rounds: number,
  { operations, history, random, padding }: WrittenLog & { random: Random; padding: object },
): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const ids = new Set(
      Array.from({ length: 1 + Math.floor(random() * 5) }, () => `t${Math.floor(random() * 10)}`),
    );
    const writes = [...ids].map(async (taskId) => {
      const states = history.get(taskId) ?? [];
      history.set(taskId, states);
      const version = states.at(-1)?.version ?? 0;
      const result = random() < 0.3 ? { result: bigResult(Math.floor(random() * 3_000)) } : {};
      const fields = { statusMessage: `write ${Math.floor(random() * 1e9)}`, ...padding, ...result };
      const state = {
        look: lookOf(version + 1, fields.statusMessage),
        version: version + 1,
        beganAt: operations.length,
        acknowledgedAt: Infinity,
      };
      states.push(state);
      await (version === 0 ? store.create(record(taskId, fields)) : store.update(taskId, fields, version));
      state.acknowledgedAt = operations.length;
    });
    await Promise.all(writes);
  }
}

/** A state in one line, or why there is none. */
export async function lookAt(
  store: WalTaskStore,
  taskId: string,
): Promise<{ look: string; version: number }> {
  try {
    const found = await store.get(taskId);
    if (found === undefined) return { look: "absent", version: 0 };
    return { look: lookOf(found.version, found.statusMessage), version: found.version };
  } catch (error) {
    return { look: String(error), version: 0 };
  }
}

function lookOf(version: number, statusMessage: string | undefined): string {
  return `${version}: ${statusMessage}`;
}

/** What may be found of a task when everything ended: the last state that was acknowledged, or one that was being written. */
export function allowedLooks(states: readonly TaskState[], endedAt: number): string[] {
  const last = states.findLastIndex(({ acknowledgedAt }) => acknowledgedAt <= endedAt);
  const looks = states
    .slice(Math.max(last, 0))
    .filter(({ beganAt }) => beganAt <= endedAt)
    .map(({ look }) => look);
  return last < 0 ? ["absent", ...looks] : looks;
}
