import { onEachShard } from "./by-shard.ts";
import { CANCELLED_INDEX, TOOLLESS_INDEX } from "./lease-indexes.ts";
import { findExpired } from "./lua/find-expired.ts";
import { sweepTasks as script } from "./lua/sweep-tasks.ts";
import type { StoreContext } from "./store-context.ts";
import { shards } from "./store-keys.ts";

/** Short enough that no other command waits for long. */
const MOST_AT_ONCE = 256;

/**
 * The server deletes an expired task by itself. This removes what its shard still says of it, all shards at once;
 * resolves to the number of tasks (C17).
 */
export async function sweepTasks(context: StoreContext): Promise<number> {
  const counts = await onEachShard(shards, (shard) => sweepShard(context, shard));
  return counts.reduce((sum, count) => sum + count, 0);
}

async function sweepShard({ runner, keys }: StoreContext, shard: number): Promise<number> {
  const own = [keys.expiries(shard), keys.indexNames(shard)];
  for (let swept = 0; ;) {
    const found = await runner.run(findExpired, own, [String(MOST_AT_ONCE)]);
    const [members, tools] = found as [string[], string[]];
    if (members.length === 0) return swept;
    const names = [CANCELLED_INDEX, TOOLLESS_INDEX, ...tools];
    const indexes = names.map((name) => keys.index(shard, name));
    const tasks = members.map((member) => keys.task(shard, member));
    const values = [String(members.length), ...members, ...names];
    const count = Number(await runner.run(script, [...own, ...indexes, ...tasks], values));
    swept += count;
    // Others sweep too, or create anew: where nothing was left for us there is nothing to do.
    if (count === 0) return swept;
  }
}
