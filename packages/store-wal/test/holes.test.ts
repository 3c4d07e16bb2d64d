import { randomBytes } from "node:crypto";
import { cpSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { segmentsIn } from "./support/churn.ts";
import { frameOf, framesOnDisk, overwrite } from "./support/log-bytes.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { quickTempDir } from "./support/temp-dir.ts";

const HOLE_BYTES = 4_096;

test("a hole of 4 KiB in the header of a file spares one of its copies: every frame is found", async () => {
  for (const at of [0, 100, 127, 129, 255]) {
    const dir = quickTempDir();
    const { store } = await openStore(dir);
    await store.create(record("first", { statusMessage: "here" }));
    await store.close();
    overwrite(dir, segmentsIn(dir)[0] ?? "", at, randomBytes(HOLE_BYTES));
    const { store: again, errors } = await openStore(dir);
    expect(await again.get("first"), `hole at ${at}`).toEqual(record("first", { statusMessage: "here" }));
    expect(errors).toHaveLength(1);
  }
});

test("a hole of 4 KiB anywhere hurts the tasks it hits, all of them, and no other: each is refused", async () => {
  const written = quickTempDir();
  const { store } = await openStore(written);
  for (let index = 0; index < 30; index += 1) await store.create(record(`t${index}`));
  for (let index = 0; index < 30; index += 1) {
    // Frames of many lengths, in batches of two.
    const scope = "s".repeat((index * 37) % 480);
    await Promise.all([
      store.update(`t${index}`, { statusMessage: "second", scope }, 1),
      index % 2 === 0 ? store.create(record(`pair-${index}`)) : undefined,
    ]);
  }
  // The names of the last 4 KiB are not written yet.
  for (let index = 0; index < 30; index += 1) await store.create(record(`last-${index}`));
  await store.close();
  const name = segmentsIn(written)[0] ?? "";
  const frames = await framesOnDisk(written, name);
  const newest = new Map(frames.map((frame) => [frame.taskId, frame]));
  const end = frameOf(frames, "last-0", 1).start;
  const begin = frameOf(frames, "t0", 2).start;
  for (let at = begin; at + HOLE_BYTES <= end; at += 101) {
    const dir = `${written}-hole`;
    rmSync(dir, { recursive: true, force: true });
    cpSync(written, dir, { recursive: true });
    overwrite(dir, name, at, randomBytes(HOLE_BYTES));
    const { store: again, errors } = await openStore(dir);
    for (const [taskId, frame] of newest) {
      const isHit = frame.start < at + HOLE_BYTES && frame.end > at;
      const context = `${taskId} with a hole at ${at}`;
      if (isHit) expect(await codeOf(again.get(taskId)), context).toBe("record_corrupt");
      else expect((await again.get(taskId))?.version, context).toBe(frame.version);
    }
    expect(errors.length).toBeGreaterThan(0);
    await again.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
