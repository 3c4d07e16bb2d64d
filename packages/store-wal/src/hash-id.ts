/** A 64-bit hash of a task id, as two unsigned halves. */
export interface IdHash {
  readonly high: number;
  readonly low: number;
}

/** What stands where there is no id. */
export const noHash: IdHash = { high: 0, low: 0 };

/**
 * Names a task in places where its id may be unreadable. Part of the on-disk format: never change it. Not
 * meant to resist an attacker; a collision would only blame damage on the wrong task.
 */
export function hashId(taskId: string): IdHash {
  let first = 0x2f6b31d5 ^ taskId.length;
  let second = 0x61c88647 + taskId.length;
  for (let index = 0; index < taskId.length; index += 1) {
    const unit = taskId.charCodeAt(index);
    first = Math.imul(first ^ unit, 0x5bd1e995);
    first ^= first >>> 15;
    second = Math.imul((second << 7) ^ (second >>> 25) ^ unit, 0x27d4eb2f);
  }
  const low = scramble(first + Math.imul(second, 3));
  const high = scramble(second ^ low);
  // All zero means "no id": that one value is given up.
  return low === 0 && high === 0 ? { high: 0, low: 1 } : { high, low };
}

/** A map key. */
export function hashKey({ high, low }: IdHash): string {
  return `${high.toString(16)}:${low.toString(16)}`;
}

export function isSameHash(left: IdHash, right: IdHash): boolean {
  return left.low === right.low && left.high === right.high;
}

export function hasHash({ high, low }: IdHash): boolean {
  return high !== 0 || low !== 0;
}

function scramble(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x7feb352d);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x846ca68b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
