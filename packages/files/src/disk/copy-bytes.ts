import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { diskErrors } from "./disk-errors.ts";
import type { PublishOptions } from "./publish-options.ts";
import { writeFully } from "./read-through.ts";

/** Reads all staged bytes, piece by piece; `take` has done with a piece when it resolves. */
export type ReadStaged = (take: (piece: Uint8Array, position: number) => Promise<void>) => Promise<number>;

/** Flushed this often, the last flush is short and the file shows that it is being written. */
const flushEveryBytes = 64 * 1024 * 1024;

/** Reads the bytes of a store elsewhere; stops at the first byte too many. */
export function readForeign(
  bytes: AsyncIterable<Uint8Array>,
  { sizeBytes, signal, onProgress }: Pick<PublishOptions, "sizeBytes" | "signal" | "onProgress">,
): ReadStaged {
  return async (take) => {
    let position = 0;
    for await (const piece of bytes) {
      signal?.throwIfAborted();
      if (position + piece.length > sizeBytes) return position + piece.length;
      await take(piece, position);
      position += piece.length;
      onProgress?.(position, sizeBytes);
    }
    return position;
  };
}

/** Copies bytes while hashing them; resolves to their digest. */
export async function copyBytes(
  read: ReadStaged,
  copy: FileHandle,
  { sizeBytes, flush }: { sizeBytes: number; flush: boolean },
): Promise<string> {
  const hash = createHash("sha256");
  let unflushed = 0;
  const bytes = await read(async (piece, position) => {
    hash.update(piece);
    await writeFully(copy, piece, position);
    unflushed += piece.length;
    if (!flush || unflushed < flushEveryBytes) return;
    await copy.datasync();
    unflushed = 0;
  });
  if (bytes !== sizeBytes) throw diskErrors.sizeMismatch(bytes, sizeBytes);
  return hash.digest("hex");
}
