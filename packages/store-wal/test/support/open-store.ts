import { onTestFinished } from "vitest";
import { WalTaskStore, type WalTaskStoreOptions } from "../../src/index.ts";

/** A store and everything it reported. */
export interface OpenedStore {
  readonly store: WalTaskStore;
  readonly errors: unknown[];
}

/** Opens a store that reports into an array and is closed when the test ends. Small files unless asked otherwise. */
export async function openStore(
  dir: string,
  options: Partial<WalTaskStoreOptions> = {},
): Promise<OpenedStore> {
  const errors: unknown[] = [];
  const store = await WalTaskStore.open({
    dir,
    reserveBytes: null,
    onError: (error) => errors.push(error),
    ...options,
  });
  onTestFinished(() => store.close());
  return { store, errors };
}

/** The code of the error that a promise rejects with. */
export async function codeOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name;
  }
}
