import type { FileHandle } from "node:fs/promises";
import { AppendQueue } from "./append-queue.ts";
import { diskErrors } from "./disk-errors.ts";

/** What {@link appendStream} needs to know. */
export interface AppendOptions {
  readonly id: string;
  /** Where the file ends. */
  readonly offset: number;
  /** The declared size, if it is known: nothing is written past it. */
  readonly sizeBytes?: number | undefined;
  readonly flush: boolean;
}

/**
 * Writes a stream at the end of a file; resolves to the size of the file, as the system tells it. A stream that
 * breaks rejects with its own error; what came before it stays.
 */
export async function appendStream(
  file: FileHandle,
  stream: AsyncIterable<Uint8Array | string>,
  options: AppendOptions,
): Promise<number> {
  let isBroken = false;
  let breakage: unknown;
  try {
    await drain(file, stream, options);
  } catch (error) {
    isBroken = true;
    breakage = error;
  }
  // Also after a broken stream: the offset that a client is told next counts these bytes.
  if (options.flush) await flush(file, options);
  if (isBroken) throw breakage;
  return sizeOf(file, options);
}

async function drain(
  file: FileHandle,
  stream: AsyncIterable<Uint8Array | string>,
  { id, offset, sizeBytes = Number.MAX_SAFE_INTEGER }: AppendOptions,
): Promise<void> {
  const queue = new AppendQueue(file, offset);
  const push = (piece: Uint8Array): Promise<void> =>
    queue.push(piece).catch((cause: unknown) => fail(file, id, cause));
  let room = sizeBytes - offset;
  try {
    for await (const piece of stream) {
      const chunk = typeof piece === "string" ? Buffer.from(piece) : piece;
      await push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      if (chunk.length > room) throw diskErrors.pastDeclaredSize(id, sizeBytes);
      room -= chunk.length;
    }
  } finally {
    // Also after a broken stream: what came is stored, and the file is closed only when no write is going on.
    await queue.settle().catch((cause: unknown) => fail(file, id, cause));
  }
}

async function fail(file: FileHandle, id: string, cause: unknown): Promise<never> {
  // A disk that does not even tell the size: the caller asks for the status later.
  const size = await file.stat().then(
    (stats) => stats.size,
    () => undefined,
  );
  throw diskErrors.failed(`transfer ${id} cannot be written`, cause, size);
}

/**
 * After a failed flush the system may have dropped the pages and forgotten it, so that a second flush would
 * succeed without them. The bytes of this write are cut off: the client sends them again.
 */
async function flush(file: FileHandle, { id, offset }: AppendOptions): Promise<void> {
  try {
    await file.datasync();
  } catch (cause) {
    await file.truncate(offset).catch((second: unknown) => {
      throw diskErrors.failed(
        `transfer ${id} is neither flushed nor put back`,
        new AggregateError([cause, second]),
      );
    });
    throw diskErrors.failed(`transfer ${id} was put back to ${offset} bytes`, cause, offset);
  }
}

async function sizeOf(file: FileHandle, { id }: AppendOptions): Promise<number> {
  try {
    return (await file.stat()).size;
  } catch (cause) {
    throw diskErrors.failed(`transfer ${id} was written, and its size cannot be told`, cause);
  }
}
