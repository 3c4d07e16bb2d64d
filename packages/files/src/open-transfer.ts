import { LongJobsError, reportBackgroundError, type TaskRecord } from "@longjobs/core";
import type { PublishPolicy } from "./disk/publish.ts";
import type { FileLocation } from "./disk/roots.ts";
import { mediaTypeOf } from "./media-type.ts";
import { parseDigest } from "./parse-digest.ts";
import { digestAtOnce, startDigest } from "./read-download.ts";
import type { Scope, TransferContext } from "./transfer-context.ts";
import { transferErrors } from "./transfer-errors.ts";
import { idleTtlMs } from "./transfer-expiry.ts";
import { newDownloadState, newUploadState, transferKind } from "./transfer-record.ts";
import type { DownloadState, TransferRecord, TransferState, UploadState } from "./transfer-record.ts";

/** What somebody wants to upload. */
export interface OpenUpload {
  /** Not needed where only one root can be written. */
  readonly root?: string | undefined;
  readonly path: string;
  readonly size?: number | undefined;
  readonly sha256?: string | undefined;
  readonly ifExists?: PublishPolicy | undefined;
}

/** What somebody wants to download. */
export interface OpenDownload {
  /** Not needed where only one root can be read. */
  readonly root?: string | undefined;
  readonly path: string;
}

/** What an upload over HTTP has besides. */
export type HttpUpload = Pick<UploadState, "metadata" | "commitOnLastByte" | "maxFileBytes">;

/**
 * Opens an upload. Everything that can be refused is refused here, before a byte is sent.
 *
 * Order: the record first, then what is staged: staged bytes without a record are garbage at any time.
 */
export async function openUpload(
  wish: OpenUpload,
  scope: Scope,
  context: TransferContext,
  http: HttpUpload = {},
): Promise<TransferRecord<UploadState>> {
  const { roots, staging, maxFileBytes } = context;
  const { size, ifExists = "fail" } = wish;
  if (size !== undefined) assertSize(size, maxFileBytes);
  const sha256 = parseDigest(wish.sha256);
  const location = locate(wish, roots.names("write"));
  const exists = await roots.checkTarget(location, { createParents: true });
  if (exists && ifExists === "fail") throw targetExists(location);
  const state = newUploadState({
    location,
    ifExists,
    sizeBytes: size ?? null,
    ...(sha256 === undefined ? {} : { sha256 }),
    ...http,
  });
  return create(state, scope, context, async (record) => {
    await staging.create(record.taskId, size ?? null);
  });
}

/** Opens a download: pins the file as it is now. */
export async function openDownload(
  wish: OpenDownload,
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord<DownloadState>> {
  const location = locate(wish, context.roots.names("read"));
  await using file = await context.roots.openSource(location);
  const sha256 = await digestAtOnce(file);
  const name = location.path.slice(location.path.lastIndexOf("/") + 1);
  const state = newDownloadState({
    source: { location },
    name,
    mediaType: mediaTypeOf(name),
    pin: file.pin,
    ...(sha256 === undefined ? {} : { sha256 }),
  });
  const record = await create(state, scope, context, async () => undefined);
  if (sha256 === undefined) startDigest(record, context);
  return record;
}

/** The record of a transfer as it begins. */
export function draftTransfer(
  state: TransferState,
  scope: Scope,
  context: Pick<TransferContext, "now" | "random" | "randomId" | "idleMs" | "maxLifetimeMs" | "leaseMs">,
): TaskRecord {
  const { now, random, randomId } = context;
  const stamp = new Date(now()).toISOString();
  return {
    taskId: randomId(),
    version: Math.floor(random() * 2 ** 31),
    status: "working",
    createdAt: stamp,
    lastUpdatedAt: stamp,
    ttlMs: idleTtlMs(0, context),
    retentionMs: null,
    attempt: 0,
    crashes: 0,
    kind: transferKind,
    data: state,
    ...(scope === undefined ? {} : { scope }),
  };
}

async function create<State extends TransferState>(
  state: State,
  scope: Scope,
  context: TransferContext,
  begin: (record: TransferRecord<State>) => Promise<void>,
): Promise<TransferRecord<State>> {
  const { ledger, store } = context;
  const draft = draftTransfer(state, scope, context);
  const { taskId } = draft;
  await ledger.count(scope, taskId, {
    bytes: state.direction === "upload" ? (state.sizeBytes ?? 0) : 0,
    isFile: state.direction === "upload",
    isOpen: true,
    sinceMs: context.now(),
    untilMs: context.now() + context.maxLifetimeMs,
  });
  try {
    await store.create(draft);
    const record: TransferRecord<State> = { ...draft, data: state };
    await begin(record);
    return record;
  } catch (error) {
    await forget(draft, context).catch((second: unknown) => reportBackgroundError(second, context.onError));
    throw error;
  }
}

/** Nobody knows the id: the record, if there is one, has no time left. */
async function forget({ taskId, scope }: TaskRecord, { ledger, store }: TransferContext): Promise<void> {
  await ledger.release(scope, taskId);
  const record = await store.get(taskId);
  if (record !== undefined) await store.update(taskId, { ttlMs: 0 }, record.version);
}

function locate({ root, path }: OpenDownload, names: readonly string[]): FileLocation {
  const [only] = names;
  if (root !== undefined) return { root, path };
  if (names.length === 1 && only !== undefined) return { root: only, path };
  throw new LongJobsError("path_not_allowed", "Several directories are served, and none was named.", {
    param: "root",
    recoveryHint:
      names.length === 0 ? "This server gives no such right." : `Pass root: one of ${names.join(", ")}.`,
  });
}

/** @throws `size_mismatch`, `file_too_large` */
export function assertSize(sizeBytes: number, maxFileBytes: number | null): void {
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw transferErrors.invalidSize();
  if (maxFileBytes !== null && sizeBytes > maxFileBytes) throw transferErrors.tooLarge(maxFileBytes);
}

function targetExists({ path }: FileLocation): LongJobsError {
  return new LongJobsError("target_exists", `There is a file at ${JSON.stringify(path)} already.`, {
    param: "path",
    recoveryHint: 'Choose another path, or pass ifExists: "version" to keep both, or "replace".',
  });
}
