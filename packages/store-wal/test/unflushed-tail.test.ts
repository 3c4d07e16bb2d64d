import { cpSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { churnUntil, segmentsIn, small } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles, SimulatedDisk } from "./support/simulated-disk.ts";
import { quickTempDir } from "./support/temp-dir.ts";
import { errno, isSegment, wrappedFiles, type FileOperation } from "./support/wrapped-files.ts";

const isFlush = ({ name, path }: FileOperation): boolean => name === "file.flush" && isSegment(path);

/** The operations of a process that is killed behind its last write, in front of the flush of it. */
async function killedInFrontOfFlush(dir: string, fsync: boolean): Promise<readonly FileOperation[]> {
  const { files, operations } = recordedFiles();
  const { store } = await openStore(dir, { files, fsync });
  await store.create(record("task", { result: bigResult(3_000) }));
  if (!fsync) await store.create(record("other"));
  await store.update("task", { statusMessage: "second", result: bigResult(4_000) }, 1);
  const killedAt = operations.findLastIndex(({ name, path }) => name === "file.write" && isSegment(path)) + 1;
  await store.close();
  return operations.slice(0, killedAt);
}

for (const fsync of [true, false]) {
  test(`what a killed process left unflushed is durable before an opening shows it (it wrote with fsync: ${fsync})`, async () => {
    const root = quickTempDir();
    const disk = new SimulatedDisk();
    for (const operation of await killedInFrontOfFlush(join(root, "written"), fsync)) disk.apply(operation);
    const dir = join(root, "killed");
    disk.materialize(dir, "kill");

    const { files, operations } = recordedFiles();
    const { store } = await openStore(dir, { files });
    expect((await store.get("task"))?.statusMessage).toBe("second");
    const openedAt = operations.length;
    // The new frame refers to the large field that the killed process wrote.
    expect(await store.update("task", { statusMessage: "third" }, 2)).toBe(3);
    const acknowledgedAt = operations.length;
    for (const [step, operation] of operations.entries()) {
      disk.apply(operation);
      if (step + 1 !== openedAt && step + 1 !== acknowledgedAt) continue;
      const cut = join(root, `cut-${step}`);
      disk.materialize(cut, "power cut");
      const { store: again, errors } = await openStore(cut);
      const version = step + 1 === openedAt ? 2 : 3;
      expect(await again.get("task")).toMatchObject({ version, result: bigResult(4_000) });
      expect(errors).toEqual([]);
    }
  });
}

test("without fsync, compaction deletes nothing that only the unflushed writes of a killed process replace", async () => {
  const root = quickTempDir();
  const durable = recordedFiles();
  const { store: first } = await openStore(join(root, "first"), { files: durable.files });
  await first.create(record("task", { result: bigResult(3_000) }));
  await first.close();
  const disk = new SimulatedDisk();
  for (const operation of durable.operations) disk.apply(operation);

  const killed = recordedFiles();
  cpSync(join(root, "first"), join(root, "second"), { recursive: true });
  const { store: second } = await openStore(join(root, "second"), { files: killed.files, fsync: false });
  await second.update("task", { result: bigResult(4_000) }, 1);
  for (const operation of killed.operations) disk.apply(operation);
  await second.close();
  const dir = join(root, "third");
  disk.materialize(dir, "kill");

  const { files, operations } = recordedFiles();
  const { store: third } = await openStore(dir, { ...small, files, fsync: false });
  const [oldest = ""] = segmentsIn(dir);
  await churnUntil(third, () => !segmentsIn(dir).includes(oldest), "the first file is gone");
  for (const operation of operations) disk.apply(operation);
  const cut = join(root, "cut");
  disk.materialize(cut, "power cut");
  const { store: again, errors } = await openStore(cut);
  expect(await again.get("task")).toMatchObject({ version: 2, result: bigResult(4_000) });
  expect(errors).toEqual([]);
});

test("an opening that cannot make an unflushed write durable shows nothing", async () => {
  const root = quickTempDir();
  const disk = new SimulatedDisk();
  for (const operation of await killedInFrontOfFlush(join(root, "written"), true)) disk.apply(operation);
  const dir = join(root, "killed");
  disk.materialize(dir, "kill");
  const files = wrappedFiles((operation, run) => (isFlush(operation) ? Promise.reject(errno("EIO")) : run()));
  expect(await codeOf(openStore(dir, { files }))).toBe("store_unavailable");
  const { store } = await openStore(dir);
  expect((await store.get("task"))?.statusMessage).toBe("second");
});

test("a log that was closed is opened without a flush of its files", async () => {
  const dir = quickTempDir();
  for (const fsync of [true, false]) {
    const { store } = await openStore(dir, { fsync });
    await store.create(record(`task-${fsync}`));
    await store.close();
    const { files, operations } = recordedFiles();
    const { store: again } = await openStore(dir, { files });
    expect(operations.filter(isFlush)).toEqual([]);
    await again.close();
  }
});
