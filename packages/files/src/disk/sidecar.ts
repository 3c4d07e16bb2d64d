import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type DiskFiles, flushDirectory } from "./disk-files.ts";

/** What was declared about an upload: the content of its sidecar file. */
export interface Sidecar {
  readonly format: 1;
  /** Absent while the size is not known. */
  readonly size?: number;
  readonly metadata?: Record<string, string | null>;
  readonly createdAt: string;
}

/** The name of the file with the bytes of an upload. Ids hold no dot, so that no two names meet. */
export function bytesName(id: string): string {
  return `${id}.part`;
}

/** The name of the sidecar of an upload. */
export function sidecarName(id: string): string {
  return `${id}.json`;
}

const ownName = /^([A-Za-z0-9][A-Za-z0-9_-]*)\.(?:part|json)$/;
const unfinishedName = /^[A-Za-z0-9][A-Za-z0-9_-]*\.[0-9a-f]{16}\.tmp$/;

/** The id that a file name of the staging directory stands for. */
export function idOfName(name: string): string | undefined {
  return ownName.exec(name)?.[1];
}

/** True for a sidecar that was being written. */
export function isUnfinishedSidecar(name: string): boolean {
  return unfinishedName.test(name);
}

/** Replaces the sidecar in one step: whoever reads sees the old one or all of the new one, also after a crash. */
export async function writeSidecar(
  files: DiskFiles,
  dir: string,
  id: string,
  sidecar: Sidecar,
): Promise<void> {
  const unfinished = join(dir, `${id}.${randomBytes(8).toString("hex")}.tmp`);
  try {
    const file = await files.open(unfinished, "wx", 0o600);
    try {
      await file.writeFile(JSON.stringify(sidecar));
      await file.sync();
    } finally {
      await file.close();
    }
    await files.rename(unfinished, join(dir, sidecarName(id)));
  } catch (error) {
    // What remains has a name that no upload has, and is removed the next time the store is opened.
    await files.unlink(unfinished).catch(() => undefined);
    throw error;
  }
  // The name is durable only after this: an upload that was acknowledged is there after a power cut.
  await flushDirectory(files, dir);
}

/** Reads a sidecar; `SyntaxError` when it is none. */
export async function readSidecar(files: DiskFiles, path: string): Promise<Sidecar> {
  const file = await files.open(path, "r");
  let text: string;
  try {
    text = await file.readFile("utf8");
  } finally {
    await file.close();
  }
  const sidecar = JSON.parse(text) as Partial<Sidecar> | null;
  if (sidecar?.format !== 1 || typeof sidecar.createdAt !== "string" || !isSize(sidecar.size)) {
    throw new SyntaxError("Not a sidecar of format 1.");
  }
  return sidecar as Sidecar;
}

function isSize(size: unknown): boolean {
  return size === undefined || (Number.isSafeInteger(size) && (size as number) >= 0);
}
