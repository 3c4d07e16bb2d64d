import { HEADER_BYTES } from "./frame-format.ts";
import { hashId, isSameHash, type IdHash } from "./hash-id.ts";
import type { ScanWindow } from "./scan-window.ts";

/** Longer ids are not looked for in damaged bytes. */
const MAX_ID_BYTES = 64 * 1024;

/**
 * The id in a damaged frame, when it is still there: its checksum may be lost, but an id whose hash is the one
 * that header or trailer vouch for is the right one.
 */
export async function identifyFrame(
  window: ScanWindow,
  offset: number,
  end: number,
  idHash: IdHash,
): Promise<string | undefined> {
  const idAt = offset + HEADER_BYTES + 4;
  if (idAt > end) return undefined;
  await window.load(offset, Math.min(end - offset, HEADER_BYTES + 4 + MAX_ID_BYTES));
  const at = window.at(idAt);
  if (at > window.bytes.length) return undefined;
  const idEnd = at + window.bytes.readUInt32LE(at - 4);
  if (idEnd > window.bytes.length) return undefined;
  for (const encoding of ["utf8", "utf16le"] as const) {
    const taskId = window.bytes.toString(encoding, at, idEnd);
    if (isSameHash(hashId(taskId), idHash)) return taskId;
  }
  return undefined;
}
