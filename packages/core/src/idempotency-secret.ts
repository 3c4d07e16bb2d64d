import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import { LongJobsError } from "./longjobs-error.ts";
import type { TaskRecord } from "./task-record.ts";

/** Reserved: no id of a client has a dot. */
export const secretRecordId = "longjobs.idempotency-secret";

/**
 * The secret that the ids of keyed tasks are made with: the option, else the one that all instances on this store share.
 * Read anew each time: a store that was emptied has another one.
 */
export async function readIdempotencySecret(options: ResolvedLifecycleOptions): Promise<string> {
  if (options.idempotencySecret !== undefined) return options.idempotencySecret;
  const { store } = options;
  const stored = await store.get(secretRecordId);
  if (stored !== undefined) return secretOf(stored);
  const own = newSecretRecord(options);
  try {
    await store.create(own);
    return secretOf(own);
  } catch (error) {
    // Another instance was first, or the reply was lost: what the store has now is what counts.
    const winner = await store.get(secretRecordId);
    if (winner === undefined) throw error;
    return secretOf(winner);
  }
}

/** It has a kind, so that it is no task to anybody, and it is terminal, so that no store looks at it for a claim. */
function newSecretRecord({ now, random }: ResolvedLifecycleOptions): TaskRecord {
  const nowIso = new Date(now()).toISOString();
  return {
    taskId: secretRecordId,
    version: Math.floor(random() * 2 ** 31),
    status: "completed",
    createdAt: nowIso,
    lastUpdatedAt: nowIso,
    ttlMs: null,
    retentionMs: null,
    attempt: 0,
    crashes: 0,
    result: {},
    kind: "secret",
    data: { secret: randomSecret() },
  };
}

function randomSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function secretOf({ kind, data }: TaskRecord): string {
  const { secret } = (data ?? {}) as { readonly secret?: unknown };
  if (kind === "secret" && typeof secret === "string" && secret !== "") return secret;
  throw new LongJobsError(
    "record_corrupt",
    `The record ${secretRecordId} holds no secret, so idempotency keys cannot be told apart; set idempotencySecret, or restore it.`,
  );
}
