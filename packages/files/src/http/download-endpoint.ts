import { LongJobsError } from "@longjobs/core";
import { keepAlive, openSource, startDigest } from "../read-download.ts";
import { tellError } from "../tell-error.ts";
import type { TransferContext } from "../transfer-context.ts";
import type { DownloadState, TransferRecord } from "../transfer-record.ts";
import { errorResponse } from "./http-error.ts";
import { parseRange } from "./parse-range.ts";
import { checkPreconditions, rangeApplies } from "./preconditions.ts";

/**
 * GET or HEAD of a download whose URL was checked. The file is the one that was pinned: a stream of it ends whole, or is
 * broken off.
 */
export async function serveDownload(
  request: Request,
  method: string,
  record: TransferRecord<DownloadState>,
  context: TransferContext,
): Promise<Response> {
  try {
    return await serve(request, method, record, context);
  } catch (error) {
    return errorResponse(tellError(error, context.onError));
  }
}

async function serve(
  request: Request,
  method: string,
  record: TransferRecord<DownloadState>,
  context: TransferContext,
): Promise<Response> {
  await using file = await openSource(record, context);
  const kept = await keepAlive(record, context);
  if (kept.data.sha256 === undefined) startDigest(kept, context);
  const validators = { etag: `"${file.validator}"`, modifiedAtMs: file.modifiedAtMs };
  const headers = describe(kept.data, validators.etag, file.modifiedAtMs);
  switch (checkPreconditions(request.headers, validators)) {
    case "failed":
      return errorResponse(changed(), headers, 412);
    case "unmodified":
      return new Response(null, { status: 304, headers });
    case "go":
  }
  const { sizeBytes } = file;
  // RFC 9110, section 14.2: Range is for GET alone.
  const isRanged = method === "GET" && rangeApplies(request.headers, validators);
  const range = isRanged ? parseRange(request.headers.get("range"), sizeBytes) : "all";
  if (range === "none") {
    headers.set("content-range", `bytes */${sizeBytes}`);
    return errorResponse(outside(sizeBytes), headers, 416);
  }
  const { start, end } = range === "all" ? { start: 0, end: sizeBytes } : range;
  headers.set("content-length", String(end - start));
  if (range !== "all") headers.set("content-range", `bytes ${start}-${end - 1}/${sizeBytes}`);
  const body = method === "HEAD" ? null : file.stream(start, end);
  return new Response(body, { status: range === "all" ? 200 : 206, headers });
}

function describe({ mediaType, name, sha256 }: DownloadState, etag: string, modifiedAtMs: number): Headers {
  const headers = new Headers({
    "accept-ranges": "bytes",
    // The URL is the credential, and it is short-lived: nobody keeps the answer for somebody else.
    "cache-control": "private, no-cache",
    "content-disposition": `attachment; filename*=UTF-8''${encodeName(name)}`,
    "content-type": mediaType,
    etag,
    "last-modified": new Date(modifiedAtMs).toUTCString(),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
  if (sha256 !== undefined)
    headers.set("repr-digest", `sha-256=:${Buffer.from(sha256, "hex").toString("base64")}:`);
  return headers;
}

/** RFC 8187. */
function encodeName(name: string): string {
  return encodeURIComponent(name.toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function changed(): LongJobsError {
  return new LongJobsError("source_changed", "The file is not the one that the condition names.", {
    recoveryHint: "Throw away what you have and open the download again.",
  });
}

function outside(total: number): LongJobsError {
  return new LongJobsError("offset_mismatch", `The file has ${total} bytes; the range is outside of it.`, {
    param: "Range",
    recoveryHint: "Ask for a range inside of the file.",
    partial: { total },
  });
}
