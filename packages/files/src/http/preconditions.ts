/** What tells one content of a file from another, in HTTP's words. */
export interface Validators {
  /** Strong, with its quotes. */
  readonly etag: string;
  readonly modifiedAtMs: number;
}

/** RFC 9110, section 13.2.2: what the conditions of a request make of it. Ranges are looked at separately. */
export function checkPreconditions(
  headers: Headers,
  { etag, modifiedAtMs }: Validators,
): "go" | "failed" | "unmodified" {
  const ifMatch = headers.get("if-match");
  if (ifMatch !== null) {
    if (!lists(ifMatch, etag)) return "failed";
  } else if (isBefore(headers.get("if-unmodified-since"), modifiedAtMs)) return "failed";
  const ifNoneMatch = headers.get("if-none-match");
  if (ifNoneMatch !== null) return lists(ifNoneMatch.replaceAll("W/", ""), etag) ? "unmodified" : "go";
  const since = Date.parse(headers.get("if-modified-since") ?? "");
  return Number.isNaN(since) || seconds(modifiedAtMs) > seconds(since) ? "go" : "unmodified";
}

/** RFC 9110, section 13.1.5: a range counts only for the very content that its asker has the beginning of. */
export function rangeApplies(headers: Headers, { etag }: Validators): boolean {
  const ifRange = headers.get("if-range");
  // A date is no strong validator: files change twice within a second.
  return ifRange === null || ifRange === etag;
}

function lists(header: string, etag: string): boolean {
  return header.trim() === "*" || header.split(",").some((each) => each.trim() === etag);
}

function isBefore(header: string | null, modifiedAtMs: number): boolean {
  const date = Date.parse(header ?? "");
  return !Number.isNaN(date) && seconds(modifiedAtMs) > seconds(date);
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000);
}
