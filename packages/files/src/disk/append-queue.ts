import type { FileHandle } from "node:fs/promises";
import { writeFully } from "./read-through.ts";

/** While one write runs, so much may wait for the next: enough that neither the network nor the disk stands still. */
const maxWaitingBytes = 256 * 1024;

/**
 * Appends pieces to a file in their order: one write at a time, each with all pieces that came during the one before.
 * After a failure nothing more is written.
 */
export class AppendQueue {
  readonly #file: FileHandle;
  #position: number;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> | undefined;
  #failure: { readonly cause: unknown } | undefined;

  constructor(file: FileHandle, position: number) {
    this.#file = file;
    this.#position = position;
  }

  /** Takes a piece, and resolves once there is room for the next. Rejects with the failure of an earlier write. */
  async push(piece: Uint8Array): Promise<void> {
    this.#throwFailure();
    // Nothing to write would end the writing before it is known to have begun.
    if (piece.length === 0) return;
    this.#waiting.push(piece);
    this.#waitingBytes += piece.length;
    this.#writing ??= this.#writeWaiting();
    if (this.#waitingBytes < maxWaitingBytes) return;
    await this.#writing;
    this.#throwFailure();
  }

  /** Resolves once everything is written, rejects with the failure of a write: no write is going on any more. */
  async settle(): Promise<void> {
    await this.#writing;
    this.#throwFailure();
  }

  async #writeWaiting(): Promise<void> {
    while (this.#waitingBytes > 0 && this.#failure === undefined) {
      const pieces = this.#waiting;
      const bytes = this.#waitingBytes;
      this.#waiting = [];
      this.#waitingBytes = 0;
      try {
        await writePieces(this.#file, pieces, this.#position);
        this.#position += bytes;
      } catch (cause) {
        this.#failure = { cause };
      }
    }
    this.#writing = undefined;
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.cause;
  }
}

async function writePieces(file: FileHandle, pieces: Uint8Array[], position: number): Promise<void> {
  let written = pieces.length === 1 ? 0 : (await file.writev(pieces, position)).bytesWritten;
  let at = position + written;
  // A short write is no failure: the next one tells why.
  for (const piece of pieces) {
    const skipped = Math.min(written, piece.length);
    written -= skipped;
    const rest = piece.subarray(skipped);
    await writeFully(file, rest, at);
    at += rest.length;
  }
}
