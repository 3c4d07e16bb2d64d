import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { decodeHeader, decodeMeta } from "../src/decode-frame.ts";
import { draftFrame } from "../src/draft-frame.ts";
import { encodeFrame } from "../src/encode-frame.ts";
import { encodeId } from "../src/encode-id.ts";
import { hashId } from "../src/hash-id.ts";
import { LogSegment } from "../src/log-segment.ts";
import { decodeSegmentHeader, FRAMES_START } from "../src/segment-header.ts";
import { segmentsIn } from "./support/churn.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { frameOf, framesOnDisk, overwrite, type FrameOnDisk } from "./support/log-bytes.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { quickTempDir } from "./support/temp-dir.ts";

const SECTOR_BYTES = 512;

/** Fills a log so that the frames of its later writes lie at every distance from the edges of sectors. */
async function killedLog(dir: string): Promise<{ name: string; frames: readonly FrameOnDisk[] }> {
  const { store } = await openStore(join(dir, "written"));
  for (let index = 0; index < 120; index += 1) await store.create(record(`t${index}`));
  for (let index = 0; index < 120; index += 1) await store.update(`t${index}`, { statusMessage: "new" }, 1);
  copyWithoutLocks(join(dir, "written"), join(dir, "killed"));
  const name = segmentsIn(join(dir, "killed"))[0] ?? "";
  return { name, frames: await framesOnDisk(join(dir, "killed"), name) };
}

test("a small write of which the power cut left one side of a sector's edge is its previous version", async () => {
  const root = quickTempDir();
  const { name, frames } = await killedLog(root);
  const bytes = readFileSync(join(root, "killed", name));
  let cuts = 0;
  for (const frame of frames.filter(({ version }) => version === 2)) {
    const edge = Math.floor(frame.end / SECTOR_BYTES) * SECTOR_BYTES;
    if (edge <= frame.start || edge === frame.end) continue;
    for (const [from, to] of [
      [frame.start, edge],
      [edge, frame.end],
    ] as const) {
      cuts += 1;
      const torn = Buffer.from(bytes.subarray(0, frame.end));
      torn.fill(0, from, to);
      const dir = join(root, `cut-${cuts}`);
      copyWithoutLocks(join(root, "killed"), dir);
      overwrite(dir, name, 0, torn);
      overwrite(dir, name, frame.end, Buffer.alloc(bytes.length - frame.end));
      for (let opening = 0; opening < 2; opening += 1) {
        const { store, errors } = await openStore(dir);
        const context = `${frame.taskId} without its bytes ${from} to ${to}, opening ${opening}`;
        expect((await store.get(frame.taskId))?.version, context).toBe(1);
        await store.close();
        expect(errors, context).toEqual([]);
      }
    }
  }
  expect(cuts).toBeGreaterThan(40);
});

test("a frame with acknowledged writes behind it is refused when it is zeros, also in a killed log", async () => {
  const root = quickTempDir();
  const { name, frames } = await killedLog(root);
  const dir = join(root, "killed");
  const { start, end } = frameOf(frames, "t10", 2);
  overwrite(dir, name, start, Buffer.alloc(end - start));
  const { store, errors } = await openStore(dir);
  expect(await codeOf(store.get("t10"))).toBe("record_corrupt");
  expect(errors).toHaveLength(1);
});

test("a write torn in front of a copy that compaction did not finish stays its previous version", async () => {
  const root = quickTempDir();
  const { store } = await openStore(join(root, "written"));
  const long = { statusMessage: "x".repeat(400), scope: "y".repeat(400) };
  await store.create(record("moved", long));
  await store.create(record("torn"));
  await store.update("torn", long, 1);
  const dir = join(root, "killed");
  copyWithoutLocks(join(root, "written"), dir);
  const name = segmentsIn(dir)[0] ?? "";
  const frames = await framesOnDisk(dir, name);
  const bytes = readFileSync(join(dir, name));
  const [original, torn] = [frameOf(frames, "moved", 1), frameOf(frames, "torn", 2)];
  // The copy is in the batch of the torn write, and its end was not written either.
  const copy = Buffer.from(copyOf(bytes, original, torn));
  const log = Buffer.concat([bytes, copy]);
  for (const end of [torn.end, log.length])
    log.fill(0, Math.floor((end - 20) / SECTOR_BYTES) * SECTOR_BYTES, end);
  overwrite(dir, name, 0, log);
  for (let opening = 0; opening < 3; opening += 1) {
    const { store: again, errors } = await openStore(dir);
    expect((await again.get("torn"))?.version, `opening ${opening}`).toBe(1);
    expect(await again.get("moved")).toEqual(record("moved", long));
    await again.close();
    expect(errors).toEqual([]);
  }
});

/** A copy of a frame, as compaction writes it, in the batch of another one and behind it. */
function copyOf(bytes: Buffer, original: FrameOnDisk, inBatchOf: FrameOnDisk): Buffer {
  const reading = decodeSegmentHeader(bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error("The log has no header.");
  const segment = new LogSegment(reading.header);
  const header = decodeHeader(bytes, original.start, segment.salt);
  const meta = header && decodeMeta(bytes, original.start, header);
  if (header === undefined || meta === undefined) throw new Error("There is no frame to copy.");
  const draft = draftFrame({
    ...header,
    id: encodeId(original.taskId),
    small: bytes.subarray(meta.smallAt, meta.smallAt + meta.smallBytes),
    copyOf: header.sequence,
  });
  const copy = Buffer.alloc(draft.bytes);
  encodeFrame(draft, copy, 0, {
    segment,
    offset: inBatchOf.end,
    sequence: header.sequence,
    flushedEnd: inBatchOf.start,
    previousHash: hashId(inBatchOf.taskId),
    names: [],
  });
  return copy;
}
