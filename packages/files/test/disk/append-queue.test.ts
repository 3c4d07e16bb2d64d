import type { FileHandle } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { AppendQueue } from "../../src/disk/append-queue.ts";
import { someBytes } from "./support/bytes.ts";

/** An open file in memory that writes as little at a time as it is told, and counts the writes at once. */
class SlowFile {
  content = Buffer.alloc(0);
  writes = 0;
  mostAtOnce = 0;
  #atOnce = 0;
  readonly #shortenTo: (wanted: number) => number;

  constructor(shortenTo: (wanted: number) => number) {
    this.#shortenTo = shortenTo;
  }

  write(
    piece: Uint8Array,
    start: number,
    length: number,
    position: number,
  ): Promise<{ bytesWritten: number }> {
    return this.#put(piece.subarray(start, start + length), position);
  }

  writev(pieces: readonly Uint8Array[], position: number): Promise<{ bytesWritten: number }> {
    return this.#put(Buffer.concat(pieces), position);
  }

  async #put(bytes: Uint8Array, position: number): Promise<{ bytesWritten: number }> {
    this.writes += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, (this.#atOnce += 1));
    await nextTurn();
    this.#atOnce -= 1;
    const bytesWritten = this.#shortenTo(bytes.length);
    expect(position).toBe(this.content.length);
    this.content = Buffer.concat([this.content, bytes.subarray(0, bytesWritten)]);
    return { bytesWritten };
  }
}

function queueOn(file: SlowFile): AppendQueue {
  return new AppendQueue(file as unknown as FileHandle, file.content.length);
}

test("whatever the pieces and however short the writes, the file gets all bytes in order, one write at a time", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 30 }),
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }),
      fc.array(fc.boolean(), { minLength: 1 }),
      async (pieces, lengths, pauses) => {
        const file = new SlowFile((wanted) =>
          Math.min(wanted, lengths[file.writes % lengths.length] ?? wanted),
        );
        const queue = queueOn(file);
        for (const [index, piece] of pieces.entries()) {
          await queue.push(piece);
          if (pauses[index % pauses.length] === true) await nextTurn();
        }
        await queue.settle();
        expect(file.content.equals(Buffer.concat(pieces))).toBe(true);
        expect(file.mostAtOnce).toBeLessThanOrEqual(1);
      },
    ),
    { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 100) },
  );
});

test("pieces that come during a write share the next one, and a bounded number of them waits (P68)", async () => {
  const file = new SlowFile((wanted) => wanted);
  const queue = queueOn(file);
  const piece = someBytes(64 * 1024);
  let mostAhead = 0;
  for (let sent = 1; sent <= 64; sent += 1) {
    await queue.push(piece);
    mostAhead = Math.max(mostAhead, sent * piece.length - file.content.length);
  }
  await queue.settle();
  expect(file.content.length).toBe(64 * piece.length);
  expect(file.writes).toBeLessThan(64);
  expect(mostAhead).toBeLessThanOrEqual(512 * 1024);
});

test("after a failed write nothing more is written, and every later call gets the failure", async () => {
  const file = new SlowFile((wanted) => {
    if (file.writes === 2) throw new Error("EIO");
    return wanted;
  });
  const queue = queueOn(file);
  await queue.push(Buffer.from("a"));
  await queue.settle();
  await queue.push(Buffer.from("b"));
  // It waits for the write that fails.
  await queue.push(Buffer.from("c"));
  await expect(queue.settle()).rejects.toThrow("EIO");
  await expect(queue.push(Buffer.from("d"))).rejects.toThrow("EIO");
  await expect(queue.settle()).rejects.toThrow("EIO");
  expect(file.content.toString()).toBe("a");
});

test("a system that writes nothing and says so is a failure, not an endless loop", async () => {
  const queue = queueOn(new SlowFile(() => 0));
  await queue.push(Buffer.from("a"));
  await expect(queue.settle()).rejects.toThrow("wrote nothing");
});
