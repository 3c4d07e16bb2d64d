import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { AppendQueue } from "../src/append-queue.ts";
import { draftFrame } from "../src/draft-frame.ts";
import { encodeId } from "../src/encode-id.ts";
import { frameKinds } from "../src/frame-format.ts";
import { LogWriter } from "../src/log-writer.ts";
import { SegmentFiles } from "../src/segment-files.ts";
import { quickTempDir } from "./support/temp-dir.ts";
import { isSegment, wrappedFiles } from "./support/wrapped-files.ts";

/** How many frames each batch has when many writers write again and again, with work of their own in between. */
async function batchesOf(writers: number, batchMs: number): Promise<number[]> {
  const dir = quickTempDir();
  let nowMs = 0;
  const batches: number[] = [];
  let seen = 0;
  const files = wrappedFiles(({ name, path }, run) => {
    if (name === "file.flush" && isSegment(path)) {
      batches.push(queue.counts.records - seen);
      seen = queue.counts.records;
      nowMs += batchMs;
    }
    return run();
  });
  const writer = new LogWriter({
    files,
    dir,
    fsync: true,
    segmentBytes: 1024 * 1024,
    randomUint32: () => 1,
    epoch: 1,
    nextSequence: 1,
    last: undefined,
    segments: new Map(),
    open: new SegmentFiles(files, dir),
    reserve: undefined,
    isTakenOver: () => false,
  });
  const queue = new AppendQueue({
    writer,
    files,
    dir,
    reserve: undefined,
    onWritten: () => {},
    onSettled: () => {},
    onTakenOver: () => {},
    onError: () => {},
    monotonicMs: () => nowMs,
  });
  const write = async (rounds: number): Promise<void> => {
    for (let round = 0; round < rounds; round += 1) {
      await nextTurn();
      const draft = draftFrame({
        kind: frameKinds.image,
        id: encodeId("a"),
        version: 1,
        bornAtMs: 0,
        ttlMs: null,
        small: "{}",
      });
      await queue.append({ draft, rank: "ordinary", onDurable: () => {} });
    }
  };
  // Each comes on a turn of the event loop of its own, so the first finds the log idle.
  await Promise.all(Array.from({ length: writers }, () => write(12)));
  // The first flush is that of the header, and each one tells of the batches in front of it.
  return batches.slice(2);
}

test("writers that come back in uneven groups are evened out, so that half of them works while the other half waits", async () => {
  const batches = await batchesOf(41, 0.1);
  expect(batches.slice(0, 6)).toEqual([1, 21, 20, 21, 20, 21]);
});

test("batches that are over at once take all that wait", async () => {
  const batches = await batchesOf(41, 0.01);
  expect(batches.slice(0, 6)).toEqual([1, 40, 1, 40, 1, 40]);
});

test("on a disk slower than its writers the next flush waits for those that come back at once", async () => {
  const batches = await batchesOf(41, 5);
  expect(batches.slice(0, 6)).toEqual([1, 41, 41, 41, 41, 41]);
});
