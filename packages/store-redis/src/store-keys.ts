import { encodeText } from "./encode-text.ts";

/**
 * How many shards there are. Part of the format: two instances that disagree would not find each other's tasks.
 * Each is one slot of a Cluster, so 64 spread over any number of nodes in use; a claim asks each of them once.
 */
export const SHARD_COUNT = 64;

/** Every shard, to go through. */
export const shards: readonly number[] = Array.from({ length: SHARD_COUNT }, (_, shard) => shard);

/** The keys of one store. Those of one shard share a slot, because a slot is computed from what is in the braces. */
export class StoreKeys {
  /** Holds the number of the format. */
  readonly format: string;
  readonly #bases: readonly string[];

  constructor(prefix: string) {
    this.format = `${prefix}:format`;
    this.#bases = shards.map((shard) => `${prefix}:{${shard}}:`);
  }

  /** The hash with the fields of one task. A channel of the same name tells of its changes. */
  task(shard: number, member: string): string {
    return `${this.#bases[shard]}t:${member}`;
  }

  /** A sorted set: every task that can expire, by when it does. */
  expiries(shard: number): string {
    return `${this.#bases[shard]}exp`;
  }

  /** A set: the names of the indexes of tools in this shard. */
  indexNames(shard: number): string {
    return `${this.#bases[shard]}indexes`;
  }

  /** A sorted set: the open tasks of one index, by the deadline of their lease. */
  index(shard: number, name: string): string {
    return `${this.#bases[shard]}${name}`;
  }
}

/** The shard of a task: FNV-1a over the code units of its id, modulo the number of shards. Part of the format. */
export function shardOf(taskId: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < taskId.length; index += 1) {
    hash = Math.imul(hash ^ taskId.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) % SHARD_COUNT;
}

/** Where one task is. */
export interface TaskPlace {
  readonly taskId: string;
  /** The id as it is written in keys and indexes. */
  readonly member: string;
  readonly shard: number;
}

export function placeOf(taskId: string): TaskPlace {
  return { taskId, member: encodeText(taskId), shard: shardOf(taskId) };
}
