import type {
  CreatedOnce,
  CreateOnceOptions,
  FoundTask,
  TaskAttempt,
  TaskLifecycle,
} from "../../src/index.ts";

/** What a keyed call of a test says besides its defaults. */
export interface KeyedCall extends Omit<CreateOnceOptions, "work" | "idempotency"> {
  readonly key?: string;
  readonly fingerprint?: string;
  readonly tool?: string;
}

export function keyed({
  key = "k1",
  fingerprint = "same",
  tool = "resize",
  ...rest
}: KeyedCall = {}): CreateOnceOptions {
  return { work: { tool }, ...rest, idempotency: { key, fingerprint } };
}

/** Creates the task of a key, which must be new. */
export async function createNew(lifecycle: TaskLifecycle, call?: KeyedCall): Promise<TaskAttempt> {
  const { attempt } = await lifecycle.createOnce(keyed(call));
  if (attempt === undefined) throw new Error("The task was there already.");
  return attempt;
}

/** Finds the task of a key, which must be there. */
export async function findAgain(lifecycle: TaskLifecycle, call?: KeyedCall): Promise<FoundTask> {
  const { found } = await lifecycle.createOnce(keyed(call));
  if (found === undefined) throw new Error("The task was created anew.");
  return found;
}

export function idOf({ attempt, found }: Partial<CreatedOnce>): string {
  return attempt?.taskId ?? found?.task.taskId ?? "";
}
