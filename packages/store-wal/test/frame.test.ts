import { isLongJobsError } from "@longjobs/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { WalTaskStore } from "../src/index.ts";
import { decodeHeader, decodeMeta, isWholeFrame } from "../src/decode-frame.ts";
import { draftFrame } from "../src/draft-frame.ts";
import { encodeFrame } from "../src/encode-frame.ts";
import { encodeId } from "../src/encode-id.ts";
import { frameKinds } from "../src/frame-format.ts";
import { hashId, noHash } from "../src/hash-id.ts";
import { LogSegment } from "../src/log-segment.ts";
import {
  decodeSegmentHeader,
  encodeSegmentHeader,
  FRAMES_START,
  parseSegmentName,
  segmentName,
} from "../src/segment-header.ts";
import { statesBefore, withBytes, writeSmallLog } from "./support/small-log.ts";
import { quickTempDir } from "./support/temp-dir.ts";

const header = {
  epoch: 3,
  number: 9,
  salt: 0xdeadbeef,
  firstSequence: 2 ** 40 + 5,
  predecessor: { epoch: 3, number: 8, validBytes: 2 ** 35 },
};

test("a frame comes back with every part of it, whatever the id and the fields are", () => {
  const text = fc.string({ unit: "binary", maxLength: 60 });
  fc.assert(
    fc.property(
      text,
      text,
      fc.nat(),
      fc.option(fc.nat(), { nil: null }),
      fc.nat(1_000),
      (taskId, value, version, ttlMs, offset) => {
        const segment = new LogSegment(header);
        const small = JSON.stringify({ value });
        const content = JSON.stringify(value.repeat(3));
        const blob = {
          key: '"big"',
          ref: undefined,
          content,
          bytes: Buffer.byteLength(content),
          field: undefined,
        };
        const draft = draftFrame({
          kind: frameKinds.image,
          id: encodeId(taskId),
          version,
          bornAtMs: 5,
          ttlMs,
          small,
          blobs: [blob],
        });
        const target = Buffer.alloc(draft.bytes + offset);
        const place = {
          segment,
          offset: FRAMES_START,
          sequence: 2 ** 45 + 1,
          flushedEnd: 7,
          previousHash: noHash,
          names: [],
        };
        const [ref] = encodeFrame(draft, target, offset, place);
        const found = decodeHeader(target, offset, segment.salt);
        if (found === undefined) throw new Error("The header is not there.");
        expect(found).toMatchObject({
          version,
          ttlMs,
          sequence: 2 ** 45 + 1,
          flushedEnd: 7,
          idHash: hashId(taskId),
        });
        expect(isWholeFrame(target, offset, found, segment.salt)).toBe(true);
        expect(isWholeFrame(target, offset, found, segment.salt + 1)).toBe(false);
        const meta = decodeMeta(target, offset, found);
        expect(meta).toMatchObject({
          taskId,
          bornAtMs: 5,
          ttlMs,
          blobs: [{ key: '"big"', epoch: 3, number: 9, offset: ref?.offset }],
        });
        const smallAt = meta?.smallAt ?? 0;
        expect(target.toString("utf8", smallAt, smallAt + (meta?.smallBytes ?? 0))).toBe(small);
        const at = offset + (ref?.offset ?? 0) - FRAMES_START;
        expect(target.toString("utf8", at, at + (ref?.bytes ?? 0))).toBe(content);
      },
    ),
  );
});

test("a segment header survives the loss of either copy, and not of both", () => {
  const block = encodeSegmentHeader(header);
  expect(decodeSegmentHeader(block)).toEqual({ kind: "good", header, damagedCopies: 0 });
  for (const at of [20, 4_244]) {
    const damaged = Buffer.from(block);
    damaged.fill(0xff, at, at + 8);
    expect(decodeSegmentHeader(damaged)).toEqual({ kind: "good", header, damagedCopies: 1 });
    damaged.fill(0xff, 4_264 - at, 4_272 - at);
    expect(decodeSegmentHeader(damaged).kind).toBe("unreadable");
  }
  expect(parseSegmentName(segmentName(header))).toEqual({ epoch: 3, number: 9 });
  expect(parseSegmentName("segment-1.log")).toBeUndefined();
});

test("a hash of an id is 64 bits, never zero, and the same for ever", () => {
  expect(hashId("task-1")).toEqual({ high: 1842740236, low: 1965442875 });
  const hashes = new Set(
    Array.from({ length: 20_000 }, (_, index) => Object.values(hashId(`task-${index}`)).join()),
  );
  expect(hashes.size).toBe(20_000);
});

test(
  "whatever bytes are in the log, it opens, and no task is served with a value it never had",
  { timeout: 60_000 },
  async () => {
    const log = await writeSmallLog(quickTempDir(), "killed");
    const final = statesBefore(log, log.bytes.length);
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 700 });
    await fc.assert(
      fc.asyncProperty(fc.nat(log.bytes.length), fc.nat(900), bytes, async (at, removed, noise) => {
        const changed = Buffer.concat([log.bytes.subarray(0, at), noise, log.bytes.subarray(at + removed)]);
        await withBytes(log, changed, async (dir) => {
          const store = await WalTaskStore.open({ dir, reserveBytes: null, onError: () => {} });
          for (const [taskId, state] of final) {
            const found = await store.get(taskId).catch((error: unknown) => error);
            if (isLongJobsError(found, "record_corrupt") || found === undefined) continue;
            const history = log.frames.filter((frame) => frame.taskId === taskId).map((frame) => frame.state);
            expect(history, `${taskId} at version ${state.version}`).toContainEqual(found);
          }
          await store.close();
        });
      }),
      { numRuns: 300 },
    );
  },
);

test("valid frames that hold no record are refused with a code, and leave the others alone", async () => {
  const log = await writeSmallLog(quickTempDir(), "killed");
  const reading = decodeSegmentHeader(log.bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error("The small log has no header.");
  const segment = new LogSegment(reading.header);
  let offset = log.bytes.length;
  const frames = ["[1,2]", "{}", "nonsense", '{"status":5}', ""].map((small, index) => {
    const draft = draftFrame({
      kind: frameKinds.image,
      id: encodeId(`odd-${index}`),
      version: 1,
      bornAtMs: 0,
      ttlMs: null,
      small,
    });
    const frame = Buffer.alloc(draft.bytes);
    encodeFrame(draft, frame, 0, {
      segment,
      offset,
      sequence: 5_000_000 + index,
      flushedEnd: 0,
      previousHash: noHash,
      names: [],
    });
    offset += frame.length;
    return frame;
  });
  await withBytes(log, Buffer.concat([log.bytes, ...frames]), async (dir) => {
    const store = await WalTaskStore.open({ dir, reserveBytes: null, onError: () => {} });
    for (let index = 0; index < frames.length; index += 1) {
      const outcome = await store.get(`odd-${index}`).catch((error: unknown) => error);
      expect(isLongJobsError(outcome, "record_corrupt"), `frame ${index}: ${String(outcome)}`).toBe(true);
    }
    expect((await store.get("one"))?.status).toBe("completed");
    await store.close();
  });
});
