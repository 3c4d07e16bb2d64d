import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";

/** So many bytes that differ from every other such bytes. */
export function someBytes(length: number): Buffer {
  return randomBytes(length);
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** A stream of these pieces. */
export function streamOf(...pieces: readonly Uint8Array[]): Readable {
  return Readable.from(pieces);
}

/** A stream that breaks after these pieces. */
export function brokenStream(error: Error, ...pieces: readonly Uint8Array[]): Readable {
  return Readable.from(
    (async function* () {
      yield* pieces;
      throw error;
    })(),
  );
}

/** All of a web stream. */
export async function collect(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
