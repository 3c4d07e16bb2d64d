import type { TaskStore } from "@longjobs/core";
import { WalTaskStore } from "@longjobs/store-wal";

/** Where a fleet keeps its tasks, as it is told to each of its processes. */
export type StorePlace = { readonly kind: "wal"; readonly dir: string };

/** Opens the store of a fleet in this process. */
export async function openStore(place: StorePlace): Promise<TaskStore> {
  return WalTaskStore.open({ dir: place.dir });
}

/** How many processes may use such a store at once. */
export const mostProcesses: { readonly [kind in StorePlace["kind"]]: number } = { wal: 1 };
