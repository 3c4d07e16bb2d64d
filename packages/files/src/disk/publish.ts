import { createHash } from "node:crypto";
import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { copyBytes, type ReadStaged, readForeign } from "./copy-bytes.ts";
import { diskErrors, toDiskError } from "./disk-errors.ts";
import { errnoOf } from "./disk-files.ts";
import { type FilePin, hasPin, toPin } from "./file-pin.ts";
import { findPublished } from "./find-published.ts";
import { giveName } from "./give-name.ts";
import { toPathError } from "./path-errors.ts";
import type { Published, PublishNote, PublishOptions } from "./publish-options.ts";
import { readThrough } from "./read-through.ts";
import type { StagingStore } from "./staging-store.ts";
import { makeTemporaryName } from "./temporary-name.ts";

export type { Published, PublishNote, PublishOptions } from "./publish-options.ts";
export type { PublishPolicy } from "./publish-policy.ts";

/**
 * Gives verified bytes their name. Until they have it everything stays staged, also when this rejects; and whoever
 * looks at the target sees the old file, or all of the new one. The declaration of the upload is kept: `discard` the
 * upload once its record says that it is published.
 *
 * Order: verify, flush the bytes, keep the note, give the name, flush the name, drop the name that the bytes had.
 * A call that was cut short anywhere is repeated with the last note, and ends the same.
 */
export async function publish(options: PublishOptions): Promise<Published> {
  const { staged, prepared } = options;
  if (prepared !== undefined && isFor(options, prepared)) {
    const name = await onTarget(options, () => findPublished(options, prepared));
    if (name !== undefined) {
      const path = "id" in staged ? await staged.store.pathOf(staged.id) : undefined;
      return finish(options, name, prepared.sha256, path);
    }
  }
  try {
    if ("open" in staged) return await copyBeside(options, readForeign(staged.open(), options));
    return await publishLocal(options, staged.store, staged.id);
  } catch (error) {
    throw toDiskError("the staged bytes cannot be published", error);
  }
}

/** Other bytes may have been staged since the note was kept: what was published before is then not what is asked for. */
function isFor({ sizeBytes, sha256 }: PublishOptions, note: PublishNote): boolean {
  return note.sizeBytes === sizeBytes && (sha256 === undefined || sha256.toLowerCase() === note.sha256);
}

async function publishLocal(options: PublishOptions, store: StagingStore, id: string): Promise<Published> {
  await using file = await store.openStaged(id);
  const { size } = await file.stat();
  if (size !== options.sizeBytes) throw diskErrors.sizeMismatch(size, options.sizeBytes);
  const path = await store.pathOf(id);
  if (await isOnSameDisk(options, path)) {
    const published = await moveFile(options, file, path);
    if (published !== undefined) return published;
  }
  return await copyBeside(
    options,
    async (take) => (await readUnchanged(options, file, take)).sizeBytes,
    path,
  );
}

/** Resolves to nothing where the disk turns out to be another one: two mounts of one disk look like one. */
async function moveFile(
  options: PublishOptions,
  file: FileHandle,
  path: string,
): Promise<Published | undefined> {
  const hash = createHash("sha256");
  const content = await readUnchanged(options, file, (piece) => void hash.update(piece));
  const sha256 = assertDigest(options, hash.digest("hex"));
  if (options.flush !== false) await flushFile(options, path);
  try {
    return await nameFile(options, { file, path, content, sha256 });
  } catch (error) {
    if (errnoOf(error) === "EXDEV") return undefined;
    throw error;
  }
}

/** Copies to a name beside the target that nobody uses, so that the last step is on one disk. */
async function copyBeside(options: PublishOptions, read: ReadStaged, path?: string): Promise<Published> {
  const { target, flush = true } = options;
  const temporary = target.directory.entry(makeTemporaryName());
  const copy = await onTarget(options, () => target.files.open(temporary, "wx", 0o600));
  try {
    const sha256 = assertDigest(options, await copyBytes(read, copy, { ...options, flush }));
    const content = toPin(await copy.stat({ bigint: true }));
    if (flush) await copy.sync();
    const published = await nameFile(options, { file: copy, path: temporary, content, sha256 });
    if (path !== undefined) await drop(options, path);
    return published;
  } catch (error) {
    await drop(options, temporary);
    throw error;
  } finally {
    await copy.close();
  }
}

/** Bytes that may get the name: what they were when their digest was found right. */
interface VerifiedFile {
  readonly file: FileHandle;
  readonly path: string;
  readonly content: FilePin;
  readonly sha256: string;
}

async function nameFile(
  options: PublishOptions,
  { file, path, content, sha256 }: VerifiedFile,
): Promise<Published> {
  const { target, sizeBytes, policy, prepared } = options;
  // Files are made with 0600; a disk without modes need not be asked for that.
  if (target.fileMode !== 0o600) await file.chmod(target.fileMode);
  const note: PublishNote = { ino: content.ino, sizeBytes, sha256 };
  const onPrepared = async (kept: PublishNote): Promise<void> => options.onPrepared?.(kept);
  await onPrepared(note);
  await assertSame(options, file, path, content);
  const unnamed = { path, note, onPrepared, placeholder: prepared?.placeholder };
  const name = await onTarget(options, () => giveName(target, unnamed, policy));
  return finish(options, name, sha256, path);
}

/** Flushing and keeping the note took their time: what gets the name is still what was verified, under this path. */
async function assertSame(
  { target }: PublishOptions,
  file: FileHandle,
  path: string,
  { ino, sizeBytes, mtimeNs }: FilePin,
): Promise<void> {
  const now = toPin(await file.stat({ bigint: true }));
  const named = await target.files.lstat(path, { bigint: true });
  const isSame = now.sizeBytes === sizeBytes && now.mtimeNs === mtimeNs && String(named.ino) === ino;
  if (!isSame) throw diskErrors.transferBusy("The transfer");
}

async function finish(
  options: PublishOptions,
  name: string,
  sha256: string,
  path: string | undefined,
): Promise<Published> {
  const { target, sizeBytes, flush = true } = options;
  if (flush) await onTarget(options, () => target.directory.flush());
  if (path !== undefined) await drop(options, path);
  return { location: target.locate(name), sizeBytes, sha256 };
}

/** Removes a name that the published file does not need. What cannot be removed is met again: by `discard`, or the sweep. */
async function drop({ target }: PublishOptions, path: string): Promise<void> {
  await target.files.unlink(path).catch(() => undefined);
}

/** Reads the whole through one descriptor, and resolves to what it read; a file that is written to meanwhile is `transfer_busy`. */
async function readUnchanged(
  { sizeBytes, signal, onProgress }: PublishOptions,
  file: FileHandle,
  take: (piece: Uint8Array, position: number) => void | Promise<void>,
): Promise<FilePin> {
  const pin = toPin(await file.stat({ bigint: true }));
  const bytes = await readThrough(file, take, {
    signal,
    onProgress: (doneBytes) => onProgress?.(doneBytes, sizeBytes),
  });
  if (bytes !== pin.sizeBytes || !(await hasPin(file, pin))) throw diskErrors.transferBusy("The transfer");
  return pin;
}

function assertDigest({ sha256 }: PublishOptions, computed: string): string {
  if (sha256 === undefined || sha256.toLowerCase() === computed) return computed;
  throw diskErrors.checksumMismatch(computed, sha256.toLowerCase());
}

/** Directories are compared: in a container, files of one directory may tell different devices. */
async function isOnSameDisk({ target }: PublishOptions, path: string): Promise<boolean> {
  const { dev } = await target.files.lstat(dirname(path), { bigint: true });
  return dev === target.directory.dev;
}

/** Through a descriptor that may write, which Windows asks for. */
async function flushFile({ target }: PublishOptions, path: string): Promise<void> {
  await using file = await target.files.open(path, constants.O_RDWR);
  await file.sync();
}

/** Runs what is done at the target: its errors are about the path, except that the disk is another one. */
async function onTarget<T>({ target }: PublishOptions, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw errnoOf(error) === "EXDEV" ? error : toPathError(error, target.location);
  }
}
