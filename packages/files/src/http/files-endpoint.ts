import type { RequestContext } from "@longjobs/core";
import type { ResolvedHttpOptions } from "../resolve-options.ts";
import { tellError } from "../tell-error.ts";
import { isOrphan, type Scope, type TransferContext } from "../transfer-context.ts";
import { isDownload, isTransfer, isUpload, type TransferRecord } from "../transfer-record.ts";
import { corsHeaders } from "./cors.ts";
import { serveDownload } from "./download-endpoint.ts";
import type { FetchOptions } from "./fetch-options.ts";
import { errorResponse, notFound } from "./http-error.ts";
import { transferIdIn, urlMethods, type TransferUrls } from "./transfer-urls.ts";
import { TusEndpoint } from "./tus-endpoint.ts";

/** What {@link FilesEndpoint} needs. */
export interface FilesEndpointOptions {
  readonly context: TransferContext;
  readonly urls: TransferUrls;
  readonly http: ResolvedHttpOptions;
  readonly resolveScope: (request: RequestContext) => Promise<Scope>;
  readonly ready: () => Promise<void>;
}

/**
 * The endpoint: TUS for uploads, GET with ranges for downloads. Every request but OPTIONS needs a signed URL, and
 * whatever is wrong with one gets the same 404, to the letter.
 */
export class FilesEndpoint {
  readonly #options: FilesEndpointOptions;
  readonly #tus: TusEndpoint;

  constructor(options: FilesEndpointOptions) {
    this.#options = options;
    this.#tus = new TusEndpoint(options);
  }

  async fetch(request: Request, options: FetchOptions): Promise<Response> {
    const response = await this.#answer(request, options);
    const cors = corsHeaders(this.#options.http.corsOrigins, request);
    for (const [name, value] of cors) response.headers.set(name, value);
    return request.method === "HEAD" && response.body !== null ? withoutBody(response) : response;
  }

  async #answer(request: Request, options: FetchOptions): Promise<Response> {
    try {
      await this.#options.ready();
      const url = new URL(request.url);
      const segment = this.#segmentOf(url);
      if (segment === undefined) throw notFound();
      // Nothing is said about any transfer: a preflight knows nothing yet.
      if (request.method === "OPTIONS")
        return new Response(null, { status: 204, headers: this.#tus.describe() });
      return segment === ""
        ? await this.#create(request, url, options)
        : await this.#serve(request, url, segment, options);
    } catch (error) {
      return errorResponse(tellError(error, this.#options.context.onError));
    }
  }

  async #create(request: Request, url: URL, options: FetchOptions): Promise<Response> {
    const grant =
      request.method === "POST"
        ? await this.#options.urls.readGrant(url.searchParams.get("grant"))
        : undefined;
    if (grant === undefined) throw notFound();
    await this.#assertCaller(grant.scope ?? undefined, request, options);
    return this.#tus.create(request, grant);
  }

  async #serve(request: Request, url: URL, segment: string, options: FetchOptions): Promise<Response> {
    const method = methodOf(request);
    const record = await this.#find(segment);
    const isSigned = await this.#options.urls.isSigned(record, url.searchParams.get("sig"));
    if (record === undefined || !isSigned || !isServed(record, method)) throw notFound();
    await this.#assertCaller(record.scope, request, options);
    if (isUpload(record)) return this.#tus.serve(request, method, record);
    if (isDownload(record)) return serveDownload(request, method, record, this.#options.context);
    throw notFound();
  }

  /** The part of the path behind that of the endpoint; `undefined` outside of it. */
  #segmentOf({ pathname }: URL): string | undefined {
    const { path } = this.#options.http;
    if (pathname === path || pathname === `${path}/`) return "";
    return pathname.startsWith(`${path}/`) ? pathname.slice(path.length + 1) : undefined;
  }

  async #find(segment: string): Promise<TransferRecord | undefined> {
    const transferId = transferIdIn(segment);
    if (transferId === undefined) return undefined;
    const record = await this.#options.context.store.get(transferId);
    if (record === undefined || !isTransfer(record)) return undefined;
    return (await isOrphan(record, this.#options.context)) ? undefined : record;
  }

  /** A signed URL is enough, unless the caller is known to be somebody else. */
  async #assertCaller(scope: Scope, request: Request, { authInfo }: FetchOptions): Promise<void> {
    if (authInfo === undefined) return;
    const headers = Object.fromEntries(request.headers);
    const caller = await this.#options.resolveScope({ transport: "http", authInfo, headers, meta: {} });
    if (caller !== scope) throw notFound();
  }
}

/** "If this header is present, the Server MUST treat it as the request's method" (TUS, X-HTTP-Method-Override). */
function methodOf(request: Request): string {
  const wish = request.headers.get("x-http-method-override");
  return request.method === "POST" && wish !== null ? wish.toUpperCase() : request.method;
}

/** Whether a transfer takes this method now: a URL is revoked when its transfer ends. */
function isServed(record: TransferRecord, method: string): boolean {
  const { data, status } = record;
  if (!urlMethods[data.direction].split(",").includes(method)) return false;
  if (status === "working") return true;
  // The client whose last answer was lost asks how far it is, and learns that all is there.
  return (
    method === "HEAD" &&
    status === "completed" &&
    data.direction === "upload" &&
    data.commitOnLastByte === true
  );
}

function withoutBody(response: Response): Response {
  void response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
