import { createHash, timingSafeEqual, type Hash } from "node:crypto";
import { LongJobsError } from "@longjobs/core";
import { transferErrors } from "../transfer-errors.ts";

/** What `Upload-Checksum` may name. TUS wants SHA-1 at least. */
export const checksumAlgorithms = ["sha1", "sha256", "sha512", "md5"] as const;

/** The checksum that a request announced for its body. */
export class UploadChecksum {
  readonly #hash: Hash;
  readonly #expected: Buffer;

  private constructor(algorithm: string, expected: Buffer) {
    this.#hash = createHash(algorithm);
    this.#expected = expected;
  }

  /** `undefined` without the header. @throws `invalid_request` when it is malformed, or cannot be honoured. */
  static parse(header: string | null, canTruncate: boolean): UploadChecksum | undefined {
    if (header === null) return undefined;
    const [, algorithm = "", digest = ""] = /^(\w+) ([A-Za-z0-9+/]+={0,2})$/.exec(header) ?? [];
    const isKnown = checksumAlgorithms.some((known) => known === algorithm);
    if (!canTruncate || !isKnown)
      throw transferErrors.malformed("Upload-Checksum", "This checksum is not supported.");
    return new UploadChecksum(algorithm, Buffer.from(digest, "base64"));
  }

  /** The same stream, hashed as it passes. */
  async *through(stream: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const piece of stream) {
      this.#hash.update(piece);
      yield piece;
    }
  }

  /** @throws `checksum_mismatch`, when what has passed is something else. */
  assertMatch(cursor: number): void {
    const found = this.#hash.digest();
    if (found.length === this.#expected.length && timingSafeEqual(found, this.#expected)) return;
    throw new LongJobsError(
      "checksum_mismatch",
      "The bytes do not match Upload-Checksum; none of them was stored.",
      {
        param: "Upload-Checksum",
        recoveryHint: `Send the bytes from ${cursor} again.`,
        partial: { cursor },
      },
    );
  }
}
