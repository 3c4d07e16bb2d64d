/** Two to the 32nd: above this, a number takes both halves of a 64-bit field. */
const HALF = 4_294_967_296;

/** Writes a safe integer as 64 bits, little-endian. */
export function writeUint64(target: Buffer, value: number, at: number): void {
  target.writeUInt32LE(value >>> 0, at);
  target.writeUInt32LE(Math.floor(value / HALF), at + 4);
}

/** Reads what {@link writeUint64} wrote. */
export function readUint64(source: Buffer, at: number): number {
  return source.readUInt32LE(at) + source.readUInt32LE(at + 4) * HALF;
}

/** True when every byte of the range is zero: space that was reserved but never written. */
export function isZero(source: Uint8Array, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if (source[at] !== 0) return false;
  return true;
}
