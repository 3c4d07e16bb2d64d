import { randomBytes } from "node:crypto";
import { rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LogSegment } from "../src/log-segment.ts";
import { nodeFiles } from "../src/node-file-layer.ts";
import { scanSegment } from "../src/scan-segment.ts";
import { decodeSegmentHeader, FRAMES_START } from "../src/segment-header.ts";
import { churnUntil, segmentsIn } from "./support/churn.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { frameOf, framesOnDisk, overwrite } from "./support/log-bytes.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { writeSmallLog } from "./support/small-log.ts";
import { tempDir } from "./support/temp-dir.ts";

test("a deleted task does not come back as a damaged one when its newer frames are compacted first", async () => {
  const dir = tempDir();
  let nowMs = 1_000;
  const options = { segmentBytes: 8_192, compactionFloorBytes: 6_000, now: () => nowMs };
  const { store: first } = await openStore(dir, options);
  await first.create(record("hurt", { ttlMs: 1_000 }));
  for (let index = 0; index < 40; index += 1) await first.create(record(`kept-${index}`));
  await first.update("hurt", { statusMessage: "second" }, 1);
  await first.close();
  const name = segmentsIn(dir)[0] ?? "";
  const { start, end } = frameOf(await framesOnDisk(dir, name), "hurt", 1);
  overwrite(dir, name, start, randomBytes(end - start));

  const { store: second } = await openStore(dir, options);
  expect((await second.get("hurt"))?.statusMessage).toBe("second");
  nowMs = 5_000;
  expect(await second.sweep()).toBe(1);
  const deletion = segmentsIn(dir).at(-1) ?? "";
  await churnUntil(second, () => !segmentsIn(dir).includes(deletion), "the deletion's file is gone");
  expect(segmentsIn(dir)).toContain(name);
  await second.close();
  const { store: third } = await openStore(dir, options);
  expect(await third.get("hurt")).toBeUndefined();
});

test("a write that never ended excuses no damage of its task that came later", async () => {
  const root = tempDir();
  const { store } = await openStore(join(root, "written"));
  await store.create(record("other"));
  const long = { statusMessage: "x".repeat(500), scope: "y".repeat(500) };
  await Promise.all([store.create(record("born", long)), store.create(record("whole"))]);
  const dir = join(root, "killed");
  copyWithoutLocks(join(root, "written"), dir);
  const name = segmentsIn(dir)[0] ?? "";
  const torn = frameOf(await framesOnDisk(dir, name), "born", 1);
  overwrite(dir, name, Math.ceil((torn.start + 80) / 512) * 512, Buffer.alloc(512));
  const { store: second } = await openStore(dir);
  expect(await second.get("born")).toBeUndefined();
  await second.create(record("born"));
  await second.update("born", { statusMessage: "acknowledged" }, 1);
  await second.create(record("behind"));
  await second.close();
  const later = segmentsIn(dir).at(-1) ?? "";
  const { start, end } = frameOf(await framesOnDisk(dir, later), "born", 2);
  overwrite(dir, later, start, randomBytes(end - start));
  const { store: third, errors } = await openStore(dir);
  expect(await codeOf(third.get("born"))).toBe("record_corrupt");
  expect(errors).toHaveLength(1);
});

test("zeros at the end of a file that is not the last are damage, and are reported", async () => {
  const dir = tempDir();
  const options = { segmentBytes: 8_192, compactionFloorBytes: 6_000 };
  const { store } = await openStore(dir, options);
  for (let index = 0; index < 21; index += 1) await store.create(record(`kept-${index}`));
  await store.update("kept-0", { statusMessage: "second" }, 1);
  const name = segmentsIn(dir)[0] ?? "";
  const successor = name.replace("01.log", "02.log");
  await churnUntil(
    store,
    () => segmentsIn(dir).length > 1 && !segmentsIn(dir).includes(successor),
    "the next file, which says where the first one ends, is gone",
  );
  await store.close();
  expect(segmentsIn(dir)).toContain(name);
  const { start, end } = frameOf(await framesOnDisk(dir, name), "kept-0", 2);
  overwrite(dir, name, start, Buffer.alloc(end - start));
  const { errors } = await openStore(dir, options);
  expect(errors).not.toEqual([]);
});

test("a file that the clean end names and that is missing is reported", async () => {
  const dir = tempDir();
  const { store: first } = await openStore(dir);
  await first.create(record("a"));
  await first.close();
  const { store: second } = await openStore(dir);
  await second.update("a", { statusMessage: "second" }, 1);
  await second.close();
  rmSync(join(dir, segmentsIn(dir)[1] ?? ""));
  const { store: third, errors } = await openStore(dir);
  expect(errors).toContainEqual(expect.objectContaining({ code: "record_corrupt" }));
  await third.create(record("b"));
  await third.close();
  const { errors: later } = await openStore(dir);
  expect(later).toEqual([]);
});

test("a scan of a file that is shorter than it was ends", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const reading = decodeSegmentHeader(log.bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error("The small log has no header.");
  const path = join(log.dir, log.name);
  for (let cut = log.bytes.length; cut > FRAMES_START; cut -= 13) {
    truncateSync(path, cut);
    const file = await nodeFiles.open(path, "r");
    let reads = 0;
    const counted = {
      ...file,
      read: (target: Buffer, at: number, length: number, position: number) => {
        reads += 1;
        if (reads > 500) throw new Error(`The scan of a file cut at ${cut} does not end.`);
        return file.read(target, at, length, position);
      },
    };
    const visitor = { frame: () => {}, damage: () => {} };
    await scanSegment(counted, new LogSegment(reading.header), { end: log.bytes.length }, visitor);
    await file.close();
  }
});
