const exposedHeaders = [
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Length",
  "Content-Range",
  "ETag",
  "Last-Modified",
  "Location",
  "Repr-Digest",
  "Tus-Checksum-Algorithm",
  "Tus-Extension",
  "Tus-Max-Size",
  "Tus-Resumable",
  "Tus-Version",
  "Upload-Defer-Length",
  "Upload-Expires",
  "Upload-Length",
  "Upload-Metadata",
  "Upload-Offset",
].join(", ");

const allowedHeaders = [
  "Authorization",
  "Content-Type",
  "If-Match",
  "If-None-Match",
  "If-Range",
  "Range",
  "Tus-Resumable",
  "Upload-Checksum",
  "Upload-Defer-Length",
  "Upload-Length",
  "Upload-Metadata",
  "Upload-Offset",
  "X-HTTP-Method-Override",
  "X-Requested-With",
].join(", ");

/** What a page of another origin may do and see. Errors have it too: a page could not read them otherwise. */
export function corsHeaders(origins: "*" | readonly string[], request: Request): Headers {
  const headers = new Headers({ "access-control-expose-headers": exposedHeaders });
  if (origins === "*") headers.set("access-control-allow-origin", "*");
  else {
    headers.set("vary", "Origin");
    const origin = request.headers.get("origin");
    if (origin !== null && origins.includes(origin)) headers.set("access-control-allow-origin", origin);
  }
  if (request.method !== "OPTIONS") return headers;
  headers.set("access-control-allow-methods", "GET, HEAD, POST, PATCH, DELETE, OPTIONS");
  headers.set("access-control-allow-headers", allowedHeaders);
  // What browsers keep at most; asking again costs a round trip per chunk.
  headers.set("access-control-max-age", "86400");
  return headers;
}
