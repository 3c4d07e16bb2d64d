import * as fs from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import { WalTaskStore } from "@longjobs/store-wal";
import { alternate, inFolder } from "../measure.ts";
import { ratioOf, toFigures, toRatio, type BenchGroup } from "../row.ts";
import { sampleRecord, structuredResult } from "../sample-record.ts";
import { nodeSqlite } from "../subjects/sqlite.ts";

const large = structuredResult(256 * 1_024);
/** What the nearest peer was measured at with the same result: its `get` clones the payload. */
const peerLargeGetsPerSecond = 623;

/** `get` of a small record and of a structured 256 KiB result, from the cache and from the disk. */
export const reads: BenchGroup = async function* ({ full, progress }) {
  const seconds = full ? 1 : 0.3;
  const repetitions = full ? 7 : 3;

  progress("get of a structured 256 KiB result");
  yield await inFolder(async (dir) => {
    const record = {
      ...sampleRecord(crypto.randomUUID()),
      status: "completed" as const,
      result: large as never,
    };
    const hot = await WalTaskStore.open({ dir });
    await hot.create(record);
    const text = JSON.stringify(record);
    return inFolder(async (coldDir) => {
      const cold = await WalTaskStore.open({ dir: coldDir, cacheBytes: 0 });
      await cold.create(record);
      const figures = toFigures(
        await alternate(
          new Map([
            ["JSON.parse", () => perSecond(seconds, async () => void JSON.parse(text))],
            ["longjobs log, hot", () => perSecond(seconds, () => hot.get(record.taskId))],
            ["longjobs log, cold", () => perSecond(seconds, () => cold.get(record.taskId))],
          ]),
          repetitions,
        ),
      );
      await Promise.all([hot.close(), cold.close()]);
      const hotMedian = figures["longjobs log, hot"]?.median ?? Number.NaN;
      return {
        group: "reads",
        row: "get of a structured 256 KiB result",
        unit: "gets/s",
        figures,
        ratios: [
          toRatio("hot / the peer's 623 per second", hotMedian / peerLargeGetsPerSecond, "at least", 10),
          ratioOf(figures, ["longjobs log, cold", "JSON.parse"], "at least", 0.3),
        ],
      };
    });
  });

  progress("get of 600 bytes");
  yield await inFolder(async (dir) =>
    inFolder(async (coldDir) =>
      inFolder(async (sqliteDir) => {
        const records = Array.from({ length: 500 }, () => sampleRecord(crypto.randomUUID()));
        const hot = await WalTaskStore.open({ dir });
        const cold = await WalTaskStore.open({ dir: coldDir, cacheBytes: 0 });
        const memory = new MemoryTaskStore();
        const sqlite = await nodeSqlite("FULL").open(sqliteDir);
        for (const record of records) {
          await Promise.all([hot, cold, memory, sqlite].map((store) => store.create(record)));
        }
        const each = (store: Pick<TaskStore, "get"> | typeof sqlite, atOnce = 1) => {
          let next = 0;
          const get = () => store.get(records[(next += 1) % records.length]?.taskId ?? "");
          const run = atOnce === 1 ? get : () => Promise.all(Array.from({ length: atOnce }, get));
          return async () => (await perSecond(seconds, run)) * atOnce;
        };
        const figures = toFigures(
          await alternate(
            new Map([
              ["node:sqlite FULL", each(sqlite)],
              ["longjobs memory", each(memory)],
              ["longjobs log, hot", each(hot)],
              ["longjobs log, cold, one at a time", each(cold)],
              ["longjobs log, cold", each(cold, 64)],
              ["fs.read, one at a time", () => rawReads(coldDir, seconds)],
            ]),
            repetitions,
          ),
        );
        await Promise.all([hot, cold, memory, sqlite].map((store) => store.close()));
        return {
          group: "reads",
          row: "get of 600 bytes",
          unit: "gets/s",
          figures,
          ratios: [
            toRatio(
              "longjobs log, hot",
              figures["longjobs log, hot"]?.median ?? Number.NaN,
              "at least",
              250_000,
            ),
            ratioOf(figures, ["longjobs log, cold", "node:sqlite FULL"], "at least", 0.25),
          ],
        };
      }),
    ),
  );
};

/** What one trip through the thread pool costs: no asynchronous read is faster one at a time. */
async function rawReads(dir: string, seconds: number): Promise<number> {
  const path = join(dir, "raw");
  await writeFile(path, Buffer.alloc(1_024));
  const file = await open(path, "r");
  const target = Buffer.allocUnsafe(900);
  const read = (): Promise<void> =>
    new Promise((resolve, reject) => {
      fs.read(file.fd, target, 0, target.length, 0, (error) => (error === null ? resolve() : reject(error)));
    });
  const figure = await perSecond(seconds, read);
  await file.close();
  return figure;
}

/** How often `run` resolves per second, one after the other. */
async function perSecond(seconds: number, run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  let runs = 0;
  while (performance.now() - startMs < seconds * 1_000) {
    for (let batch = 0; batch < 20; batch += 1) await run();
    runs += 20;
  }
  return runs / ((performance.now() - startMs) / 1_000);
}
