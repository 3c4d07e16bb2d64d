/** Tables for four bytes at a time. */
const tables: Int32Array = makeTables();

/**
 * The checksum of `node:zlib`'s crc32 for a few bytes: for the ends of a frame a call into native code costs
 * more than the work.
 *
 * @param start - The checksum to go on from.
 */
export function smallChecksum(source: Uint8Array, from: number, to: number, start: number): number {
  let sum = ~start;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    sum ^=
      byte(source, at) |
      (byte(source, at + 1) << 8) |
      (byte(source, at + 2) << 16) |
      (byte(source, at + 3) << 24);
    sum =
      entry(768 + (sum & 255)) ^
      entry(512 + ((sum >>> 8) & 255)) ^
      entry(256 + ((sum >>> 16) & 255)) ^
      entry(sum >>> 24);
  }
  for (; at < to; at += 1) sum = entry((sum ^ byte(source, at)) & 255) ^ (sum >>> 8);
  return ~sum >>> 0;
}

function byte(source: Uint8Array, at: number): number {
  return source[at] as number;
}

function entry(at: number): number {
  return tables[at] as number;
}

function makeTables(): Int32Array {
  const made = new Int32Array(4 * 256);
  for (let value = 0; value < 256; value += 1) {
    let sum = value;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ 0xedb88320;
    made[value] = sum;
  }
  for (let at = 256; at < made.length; at += 1) {
    const before = made[at - 256] as number;
    made[at] = (made[before & 255] as number) ^ (before >>> 8);
  }
  return made;
}
