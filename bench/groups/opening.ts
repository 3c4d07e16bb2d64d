import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { WalTaskStore } from "@longjobs/store-wal";
import { fillWithFinishedTasks } from "../fill.ts";
import { inFolder, summarise } from "../measure.ts";
import { toRatio, type BenchGroup, type Ratio, type Row } from "../row.ts";
import { sampleRecord } from "../sample-record.ts";

const run = promisify(execFile);
const child = fileURLToPath(new URL("../open-child.ts", import.meta.url));

/** What a fresh process measures when it opens a log. */
export interface Opened {
  readonly openMs: number;
  readonly memoryMb: number;
}

/** Time and memory to open a log, each time in a process of its own, beside a bare scan of as many bytes. */
export const opening: BenchGroup = async function* ({ full, progress }) {
  for (const [tasks, maxMb] of full
    ? ([
        [100_000, 60],
        [300_000, 150],
      ] as const)
    : ([[100_000, 60]] as const)) {
    progress(`opening ${tasks} finished tasks of 1 KiB`);
    yield* await inFolder(async (dir) => {
      const store = await WalTaskStore.open({ dir: join(dir, "log"), fsync: false });
      await fillWithFinishedTasks(store, tasks, 1_024);
      await store.close();
      await writeYardstick(join(dir, "yardstick.jsonl"), tasks, 1_024);
      return measureOpening(dir, `opening ${tasks} finished tasks of 1 KiB`, full ? 5 : 3, maxMb);
    });
  }
  const [results, kib] = full ? [2_000, 256] : [500, 256];
  progress(`opening ${results} results of ${kib} KiB`);
  yield await inFolder(async (dir) => {
    const store = await WalTaskStore.open({ dir, fsync: false });
    await fillWithFinishedTasks(store, results, kib * 1_024);
    await store.close();
    const opened = await openInChild("log", dir);
    return {
      group: "opening",
      row: `memory after opening ${results} results of ${kib} KiB`,
      unit: "MB",
      figures: { "longjobs log": summarise([opened.memoryMb]) },
      ratios: [toRatio("longjobs log", opened.memoryMb, "at most", 40)],
    };
  });
  if (!full) return;
  progress("opening a log of 1 GiB");
  yield await inFolder(async (dir) => {
    const store = await WalTaskStore.open({ dir, fsync: false });
    await fillWithFinishedTasks(store, 1_024, 1_024 * 1_024);
    await store.close();
    const { openMs } = await openInChild("log", dir);
    return {
      group: "opening",
      row: "opening a log of 1 GiB",
      unit: "ms",
      figures: { "longjobs log": summarise([openMs]) },
      ratios: [],
    };
  });
};

async function measureOpening(dir: string, row: string, repetitions: number, maxMb: number): Promise<Row[]> {
  const log: Opened[] = [];
  const yardstick: Opened[] = [];
  for (let round = 0; round < repetitions; round += 1) {
    yardstick.push(await openInChild("yardstick", join(dir, "yardstick.jsonl")));
    log.push(await openInChild("log", join(dir, "log")));
  }
  const figures = (choose: (opened: Opened) => number) => ({
    yardstick: summarise(yardstick.map(choose)),
    "longjobs log": summarise(log.map(choose)),
  });
  const times = figures(({ openMs }) => openMs);
  const memory = figures(({ memoryMb }) => memoryMb);
  const ratios: Ratio[] = [
    toRatio(
      "longjobs log / yardstick",
      times["longjobs log"].median / times.yardstick.median,
      "at most",
      2.5,
    ),
  ];
  return [
    { group: "opening", row, unit: "ms", figures: times, ratios },
    {
      group: "opening",
      row: `memory after ${row}`,
      unit: "MB",
      figures: memory,
      ratios: [toRatio("longjobs log", memory["longjobs log"].median, "at most", maxMb)],
    },
  ];
}

async function openInChild(kind: "log" | "yardstick", path: string): Promise<Opened> {
  const { stdout } = await run(process.execPath, ["--expose-gc", child, kind, path]);
  return JSON.parse(stdout) as Opened;
}

/** The same records as lines of JSON. */
async function writeYardstick(path: string, tasks: number, bytes: number): Promise<void> {
  const file = createWriteStream(path);
  for (let task = 0; task < tasks; task += 1) {
    const text = "x".repeat(bytes - 600);
    const record = {
      ...sampleRecord(crypto.randomUUID()),
      status: "completed",
      result: { content: [{ type: "text", text }] },
    };
    if (!file.write(`${JSON.stringify(record)}\n`))
      await new Promise<void>((resolve) => file.once("drain", resolve));
  }
  await new Promise<void>((resolve) => file.end(resolve));
}
