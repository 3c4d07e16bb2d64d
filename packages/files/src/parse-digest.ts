import { transferErrors } from "./transfer-errors.ts";

/** A sha256 in lower-case hexadecimal. @throws `checksum_mismatch` for anything else. */
export function parseDigest(sha256: string | undefined): string | undefined {
  if (sha256 === undefined) return undefined;
  if (typeof sha256 !== "string" || !/^[0-9a-fA-F]{64}$/.test(sha256)) throw transferErrors.invalidDigest();
  return sha256.toLowerCase();
}
