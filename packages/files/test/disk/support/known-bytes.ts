import { createCipheriv } from "node:crypto";

const zeros = Buffer.alloc(64 * 1024 + 16);

/** Bytes that two processes agree on: a part of an endless sequence of pseudo-random ones. */
export function knownBytes(start: number, length: number): Buffer {
  const counter = Buffer.alloc(16);
  counter.writeUInt32BE(Math.floor(start / 16), 12);
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16, "longjobs"), counter);
  const skipped = start % 16;
  const wanted = skipped + length;
  const input = wanted <= zeros.length ? zeros.subarray(0, wanted) : Buffer.alloc(wanted);
  return cipher.update(input).subarray(skipped);
}
