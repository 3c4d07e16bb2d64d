import { createCipheriv } from "node:crypto";

/** Bytes that two processes agree on: a part of an endless sequence of pseudo-random ones. */
export function knownBytes(start: number, length: number): Buffer {
  const counter = Buffer.alloc(16);
  counter.writeUInt32BE(Math.floor(start / 16), 12);
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16, "longjobs"), counter);
  const skipped = start % 16;
  return cipher.update(Buffer.alloc(skipped + length)).subarray(skipped);
}
