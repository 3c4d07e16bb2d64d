import { reportBackgroundError, type TaskPatch } from "@longjobs/core";
import type { StagedBytes } from "./disk/publish-options.ts";
import { publish, type Published, type PublishNote } from "./disk/publish.ts";
import { parseDigest } from "./parse-digest.ts";
import {
  assertVisible,
  asTransferError,
  readTransfer,
  taskIdOf,
  type Scope,
  type TransferContext,
} from "./transfer-context.ts";
import { transferErrors } from "./transfer-errors.ts";
import { elapsedOf } from "./transfer-expiry.ts";
import { isUpload, publishedFile } from "./transfer-record.ts";
import type { PublishedFile, TransferRecord, UploadState } from "./transfer-record.ts";
import { asTransfer, type TransferWriter } from "./transfer-writers.ts";
import { endAfterError, ensureStaged, stateOf, takeUpload } from "./write-upload.ts";

/**
 * Publishes an upload: all of its bytes, with the right sha256, or nothing. A refused commit leaves the transfer open
 * and its bytes staged. A commit of a committed transfer answers as the first one did.
 *
 * Order: the file gets its name, then the record says so, then the staged bytes go. A call that was cut short in
 * between is repeated: the note that was kept before the file got its name tells it apart from a stranger's.
 */
export async function commitUpload(
  transferId: unknown,
  givenDigest: string | undefined,
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord> {
  const sha256 = parseDigest(givenDigest);
  const record = await readTransfer(transferId, scope, context);
  const before = repeatedCommit(record, sha256);
  if (before !== undefined) return before;
  const writer = await takeUpload(record.taskId, "tool", scope, context);
  return commitUnderWriter(writer, sha256, context);
}

/** {@link commitUpload} for a caller that has the right to write; the right has ended when this settles. */
export async function commitUnderWriter(
  writer: TransferWriter,
  sha256: string | undefined,
  context: TransferContext,
): Promise<TransferRecord> {
  let file: PublishedFile;
  const rest = writer.keepAlive();
  try {
    file = toPublishedFile(await publishStaged(writer, sha256, context));
  } catch (error) {
    rest();
    await endAfterError(writer, context);
    throw error;
  }
  rest();
  const record = asTransfer(
    await asTransferError(() => writer.end((found) => committed(found, file, context))),
  );
  await tidyUp(context, async () => {
    await context.staging.discard(record.taskId);
    await context.ledger.count(record.scope, record.taskId, {
      bytes: file.size,
      isFile: true,
      isOpen: false,
      sinceMs: Date.parse(record.createdAt),
      untilMs: context.now() + context.retentionMs,
    });
  });
  return record;
}

/** What is left to do when the record says how a transfer ended: a sweep does what fails here. */
async function tidyUp({ onError }: TransferContext, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    reportBackgroundError(error, onError);
  }
}

async function publishStaged(
  writer: TransferWriter,
  sha256: string | undefined,
  context: TransferContext,
): Promise<Published> {
  const { roots } = context;
  const { taskId } = writer.record;
  const state = stateOf(writer);
  const expected = expectedDigest(state, sha256);
  const sizeBytes = await completeSize(taskId, state, context);
  await using target = await roots.resolveTarget(state.location, { createParents: true });
  return await publish({
    staged: stagedBytesOf(taskId, context),
    target,
    sizeBytes,
    sha256: expected,
    policy: state.ifExists,
    signal: writer.signal,
    onProgress: () => void writer.beforeBytes().catch(heard),
    onPrepared: (prepared) => writer.update((found) => noted(found, prepared)),
    ...(state.prepared === undefined ? {} : { prepared: state.prepared }),
  });
}

/** The size of an upload that is all there. @throws `size_mismatch`; the transfer stays open then. */
async function completeSize(taskId: string, state: UploadState, context: TransferContext): Promise<number> {
  const { prepared, sizeBytes } = state;
  const staged = await context.staging.stagedBytes(taskId);
  // After a commit that was cut short the bytes may have left the staging already.
  if (staged === undefined && prepared !== undefined) return prepared.sizeBytes;
  const cursor = staged ?? (await ensureStaged(taskId, state, context));
  if (sizeBytes !== null && sizeBytes !== cursor) throw transferErrors.incomplete(cursor, sizeBytes);
  return cursor;
}

/** A lost lease is heard again when the note is kept, before the file gets its name. */
function heard(): void {}

function stagedBytesOf(taskId: string, { staging }: TransferContext): StagedBytes {
  if (staging.local !== undefined) return { store: staging.local, id: taskId };
  return {
    open: () => {
      const bytes = staging.read(taskId, 0);
      if (bytes === undefined)
        throw new TypeError("The staging store has no read(): nothing that it holds can be committed.");
      return bytes;
    },
  };
}

/** The digest that the bytes must have: a file is published only when somebody said what it is. */
function expectedDigest({ sha256: declared }: UploadState, given: string | undefined): string {
  if (declared !== undefined && given !== undefined && declared !== given) throw transferErrors.otherDigest();
  const expected = declared ?? given;
  if (expected === undefined) throw transferErrors.digestNeeded();
  return expected;
}

function repeatedCommit(record: TransferRecord, sha256: string | undefined): TransferRecord | undefined {
  const file = publishedFile(record);
  if (!isUpload(record) || file === undefined) return undefined;
  if (sha256 !== undefined && sha256 !== file.sha256) throw transferErrors.ended("committed");
  return record;
}

function committed(
  record: TransferRecord,
  file: PublishedFile,
  { now, retentionMs }: TransferContext,
): TaskPatch {
  return {
    status: "completed",
    result: file,
    data: withoutNote(record.data as UploadState),
    ttlMs: elapsedOf(record, now()) + retentionMs,
  };
}

function withoutNote({ prepared: _done, ...state }: UploadState): UploadState {
  return state;
}

function noted({ data }: TransferRecord, prepared: PublishNote): TaskPatch {
  return { data: { ...data, prepared } };
}

function toPublishedFile({ location, sizeBytes, sha256 }: Published): PublishedFile {
  return { root: location.root, path: location.path, size: sizeBytes, sha256 };
}

/**
 * Ends a transfer without publishing anything. Aborting one that was aborted already is fine.
 *
 * Order: the record first, which revokes the URLs at once; then the bytes, which a sweep would find too.
 */
export async function abortTransfer(
  transferId: unknown,
  caller: "tool" | "request",
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord> {
  const record = await readTransfer(transferId, scope, context);
  if (record.status === "cancelled") return record;
  if (record.status === "completed") throw transferErrors.ended("committed");
  if (taskIdOf(record.data) !== undefined) throw transferErrors.ofTask();
  return isUpload(record)
    ? abortUpload(record.taskId, caller, scope, context)
    : endDownload(record, scope, context);
}

async function abortUpload(
  taskId: string,
  caller: "tool" | "request",
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord> {
  const writer = await takeUpload(taskId, caller, scope, context);
  return abortUnderWriter(writer, context);
}

/** Ends an upload for a caller that has the right to write; the right has ended when this settles. */
export async function abortUnderWriter(
  writer: TransferWriter,
  context: TransferContext,
): Promise<TransferRecord> {
  const { taskId, scope } = writer.record;
  const record = await asTransferError(() => writer.end((found) => aborted(found, context)));
  await tidyUp(context, async () => {
    await context.staging.discard(taskId);
    await context.ledger.release(scope, taskId);
  });
  return record;
}

async function endDownload(
  { taskId }: TransferRecord,
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord> {
  const record = await asTransferError(() =>
    context.writer.write(taskId, (found) => {
      assertVisible(found as TransferRecord, scope);
      return found.status === "working" ? aborted(found as TransferRecord, context) : undefined;
    }),
  );
  await tidyUp(context, () => context.ledger.release(scope, taskId));
  return asTransfer(record);
}

function aborted(record: TransferRecord, { now, retentionMs }: TransferContext): TaskPatch {
  return { status: "cancelled", ttlMs: elapsedOf(record, now()) + retentionMs };
}
