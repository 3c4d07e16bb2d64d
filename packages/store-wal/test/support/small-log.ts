import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { WalTaskStore } from "../../src/index.ts";
import { LogSegment } from "../../src/log-segment.ts";
import { nodeFiles } from "../../src/node-file-layer.ts";
import { scanSegment } from "../../src/scan-segment.ts";
import { decodeSegmentHeader, FRAMES_START } from "../../src/segment-header.ts";
import { copyWithoutLocks } from "./crash-store.ts";
import { bigResult, record } from "./records.ts";

/** A frame of the small log: whose it is, what the task was after it, and where it lies. */
export interface LoggedFrame {
  readonly taskId: string;
  readonly state: TaskRecord;
  readonly start: number;
  readonly end: number;
}

/** A log of one file, its bytes, and the history it tells. */
export interface SmallLog {
  readonly dir: string;
  readonly name: string;
  readonly bytes: Buffer;
  readonly frames: readonly LoggedFrame[];
}

/**
 * Writes a log with several tasks, versions and a large field that later frames refer to. `ending` says how
 * its owner went: closed, or killed with the last write acknowledged.
 */
export async function writeSmallLog(root: string, ending: "closed" | "killed"): Promise<SmallLog> {
  const written = join(root, "written");
  const store = await WalTaskStore.open({ dir: written, reserveBytes: null });
  const states: TaskRecord[] = [];
  const keep = async (taskId: string): Promise<void> => {
    const state = await store.get(taskId);
    if (state !== undefined) states.push(state);
  };
  for (const taskId of ["one", "big", "two"]) {
    await store.create(record(taskId, taskId === "big" ? { result: bigResult(560) } : { scope: taskId }));
    await keep(taskId);
  }
  await store.update("big", { progress: { done: 1 } }, 1);
  await keep("big");
  await store.update("two", { statusMessage: "second" }, 1);
  await keep("two");
  await store.create(record("last"));
  await keep("last");
  await store.update("one", { status: "completed", result: { content: [] } }, 1);
  await keep("one");

  const dir = join(root, "log");
  if (ending === "closed") {
    await store.close();
    cpSync(written, dir, { recursive: true });
  } else {
    copyWithoutLocks(written, dir);
    await store.close();
  }
  const name = readdirSync(dir).find((file) => file.endsWith(".log")) ?? "";
  const bytes = readFileSync(join(dir, name));
  return { dir, name, bytes, frames: await locate(dir, name, bytes, states) };
}

/** Between the two headers of a file lie zeros that mean nothing. */
export function means(offset: number): boolean {
  return offset < 128 || offset >= 4_224;
}

/** The state of each task after the frames that end before `end`. */
export function statesBefore({ frames }: SmallLog, end: number): Map<string, TaskRecord> {
  return new Map(frames.filter((frame) => frame.end <= end).map(({ taskId, state }) => [taskId, state]));
}

/** The log with other bytes in its one file, in a fresh directory that `run` may use. */
export async function withBytes(
  log: SmallLog,
  bytes: Buffer,
  run: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = join(log.dir, "..", "trial");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir);
  for (const name of readdirSync(log.dir)) {
    if (name !== log.name) cpSync(join(log.dir, name), join(dir, name));
  }
  writeFileSync(join(dir, log.name), bytes);
  await run(dir);
}

async function locate(
  dir: string,
  name: string,
  bytes: Buffer,
  states: readonly TaskRecord[],
): Promise<LoggedFrame[]> {
  const reading = decodeSegmentHeader(bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error("The small log has no header.");
  const file = await nodeFiles.open(join(dir, name), "r");
  const frames: LoggedFrame[] = [];
  await scanSegment(
    file,
    new LogSegment(reading.header),
    { end: bytes.length },
    {
      frame: ({ meta: { taskId }, offset, bytes: length }) => {
        const state = states[frames.length];
        if (state?.taskId !== taskId) throw new Error("The small log is not what was written.");
        frames.push({ taskId, state, start: offset, end: offset + length });
      },
      damage: () => {
        throw new Error("The small log is damaged.");
      },
    },
  );
  await file.close();
  return frames;
}
