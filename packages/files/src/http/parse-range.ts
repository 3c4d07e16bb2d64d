/** Bytes from `start` to before `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The one range that a `Range` header asks for; `"all"` where there is none, or one that may be ignored (RFC 9110,
 * section 14.2: several ranges, another unit, a malformed one); `"none"` where it is outside of the file.
 */
export function parseRange(header: string | null, sizeBytes: number): ByteRange | "all" | "none" {
  const [, first = "", last = ""] = /^bytes=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header ?? "") ?? [];
  if (first === "" && last === "") return "all";
  if (first === "") {
    const suffix = Number(last);
    return suffix === 0 || sizeBytes === 0
      ? "none"
      : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(first);
  const end = last === "" ? sizeBytes : Math.min(Number(last) + 1, sizeBytes);
  if (last !== "" && Number(last) < start) return "all";
  return start >= sizeBytes ? "none" : { start, end };
}
