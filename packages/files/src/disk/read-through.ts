import type { FileHandle } from "node:fs/promises";

/** Large enough that the system calls cost little, small enough that hashing it takes well under a millisecond. */
const chunkBytes = 256 * 1024;

/** Options of {@link readThrough}. */
export interface ReadThroughOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each piece with the number of bytes so far. */
  readonly onProgress?: ((doneBytes: number) => void) | undefined;
}

/**
 * Reads a file from its start, piece by piece through one buffer; `take` has done with a piece when it resolves.
 * Resolves to the number of bytes until the end of the file.
 */
export async function readThrough(
  file: FileHandle,
  take: (piece: Uint8Array, position: number) => void | Promise<void>,
  { signal, onProgress }: ReadThroughOptions = {},
): Promise<number> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes);
  let position = 0;
  for (;;) {
    signal?.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return position;
    await take(buffer.subarray(0, bytesRead), position);
    position += bytesRead;
    onProgress?.(position);
  }
}

/** Writes all of `bytes` at `position`; a short write goes on where it ended. */
export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw new Error("The system wrote nothing.");
    done += bytesWritten;
  }
}
