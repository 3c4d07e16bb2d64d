import { isLongJobsError, type LongJobsError } from "@longjobs/core";
import { ERRORS, Server } from "@tus/server";
import { commitUpload } from "../commit-upload.ts";
import { assertSize, openUpload } from "../open-transfer.ts";
import { tellError } from "../tell-error.ts";
import { expiresAtMs } from "../transfer-expiry.ts";
import type { Scope, TransferContext } from "../transfer-context.ts";
import { transferErrors } from "../transfer-errors.ts";
import type { TransferRecord, UploadState } from "../transfer-record.ts";
import { cleanName } from "./clean-name.ts";
import { errorResponse, notFound } from "./http-error.ts";
import type { GrantClaims, TransferUrls } from "./transfer-urls.ts";
import type { TusCall } from "./tus-call.ts";
import { tusLocker } from "./tus-locker.ts";
import { TusStore } from "./tus-store.ts";
import { checksumAlgorithms, UploadChecksum } from "./upload-checksum.ts";

/** What {@link TusEndpoint} needs. */
export interface TusEndpointOptions {
  readonly context: TransferContext;
  readonly urls: TransferUrls;
}

const tusVersion = "1.0.0";

/** The headers that `@tus/server` has to see; others are none of its business. */
const protocolHeaders = [
  "content-length",
  "content-type",
  "tus-resumable",
  "upload-concat",
  "upload-defer-length",
  "upload-length",
  "upload-metadata",
  "upload-offset",
];

/** Longer metadata is refused: it is kept with the transfer. */
const maxMetadataBytes = 4_096;

/**
 * Uploads by TUS 1.0: `@tus/server` speaks the protocol, transfers do the work. Each request gets a server of its own,
 * which is a handful of small objects, so that nothing of one request is ever seen by another.
 */
export class TusEndpoint {
  readonly #context: TransferContext;
  readonly #urls: TransferUrls;

  constructor({ context, urls }: TusEndpointOptions) {
    this.#context = context;
    this.#urls = urls;
  }

  /** What the server can do, for OPTIONS. */
  describe(): Record<string, string> {
    const { maxFileBytes, staging } = this.#context;
    const extensions = [
      "creation",
      "creation-with-upload",
      "creation-defer-length",
      "expiration",
      "termination",
    ];
    return {
      "tus-resumable": tusVersion,
      "tus-version": tusVersion,
      "tus-extension": [...extensions, ...(staging.abilities.truncate ? ["checksum"] : [])].join(","),
      ...(staging.abilities.truncate ? { "tus-checksum-algorithm": checksumAlgorithms.join(",") } : {}),
      ...(maxFileBytes === null ? {} : { "tus-max-size": String(maxFileBytes) }),
    };
  }

  /** POST with a grant. */
  create(request: Request, grant: GrantClaims): Promise<Response> {
    return this.#serve(request, "POST", { scope: grant.scope ?? undefined, grant, record: undefined });
  }

  /** HEAD, PATCH or DELETE of an upload whose URL was checked. */
  async serve(request: Request, method: string, record: TransferRecord<UploadState>): Promise<Response> {
    return this.#serve(request, method, { scope: record.scope, grant: undefined, record });
  }

  async #serve(
    request: Request,
    method: string,
    subject: Pick<TusCall, "grant" | "record"> & { readonly scope: Scope },
  ): Promise<Response> {
    // "If the version specified by the Client is not supported by the Server, it MUST respond with the 412 status"
    if (request.headers.get("tus-resumable") !== tusVersion) return wrongVersion();
    let call: TusCall | undefined;
    try {
      call = { ...this.#begin(request, method), ...subject };
      if (method === "HEAD") await this.#commitIfComplete(call);
      const response = await this.#serverOf(call).handleWeb(toInnerRequest(request, method));
      return response.status < 400
        ? this.#finish(response, call)
        : await this.#refuse(response.status, await response.text(), call);
    } catch (error) {
      return this.#tell(error);
    }
  }

  #begin(request: Request, method: string): Omit<TusCall, "scope" | "grant" | "record"> {
    const checksum = UploadChecksum.parse(
      request.headers.get("upload-checksum"),
      this.#context.staging.abilities.truncate,
    );
    if ((request.headers.get("upload-metadata") ?? "").length > maxMetadataBytes)
      throw transferErrors.malformed(
        "Upload-Metadata",
        `Upload-Metadata is longer than ${maxMetadataBytes} bytes.`,
      );
    return { method, checksum, location: undefined, writer: undefined, error: undefined };
  }

  #serverOf(call: TusCall): Server {
    const context = this.#context;
    return new Server({
      path: "/",
      datastore: new TusStore(call, context),
      locker: tusLocker(call, context),
      // Whoever is asked to stop stops now; what has arrived is staged first.
      lockDrainTimeout: 1,
      maxSize: () => this.#maxBytes(call) ?? 0,
      namingFunction: (inner, metadata) => this.#open(call, inner, metadata ?? {}),
      generateUrl: () => call.location ?? "",
      getFileIdFromRequest: () => call.record?.taskId,
      onUploadFinish: async () => {
        await this.#commitIfComplete(call);
        return {};
      },
      onResponseError: (_inner, error) => {
        call.error ??= error;
        return undefined;
      },
    });
  }

  /** Opens the transfer of a creation: its id is what `@tus/server` asks for first. */
  async #open(
    call: TusCall,
    inner: Request,
    metadata: Readonly<Record<string, string | null>>,
  ): Promise<string> {
    const { grant } = call;
    if (grant === undefined) throw notFound();
    const length = inner.headers.get("upload-length");
    const size = length === null ? undefined : Number(length);
    if (size !== undefined) assertSize(size, this.#maxBytes(call));
    const { sha256 } = metadata;
    const raw = inner.headers.get("upload-metadata");
    const name = cleanName(metadata["filename"] ?? metadata["name"]);
    const path = grant.directory === "" ? name : `${grant.directory}/${name}`;
    const record = await openUpload(
      { root: grant.root, path, size, sha256: sha256 ?? undefined, ifExists: grant.ifExists },
      call.scope,
      this.#context,
      {
        ...(raw === null ? {} : { metadata: raw }),
        ...(typeof sha256 === "string" ? { commitOnLastByte: true } : {}),
        ...(grant.maxFileBytes === null ? {} : { maxFileBytes: grant.maxFileBytes }),
      },
    );
    call.record = record;
    call.location = await this.#urls.urlOf(record);
    return record.taskId;
  }

  #maxBytes({ grant, record }: TusCall): number | null {
    const bounds = [grant?.maxFileBytes, record?.data.maxFileBytes, this.#context.maxFileBytes];
    const known = bounds.filter((bound) => typeof bound === "number");
    return known.length === 0 ? null : Math.min(...known);
  }

  /** Publishes an upload that wants to be published with its last byte, also one that a crash had kept from it. */
  async #commitIfComplete(call: TusCall): Promise<void> {
    const { record, scope } = call;
    if (record?.data.commitOnLastByte !== true || record.status !== "working") return;
    const staged = await this.#context.staging.stagedBytes(record.taskId);
    if (staged !== record.data.sizeBytes) return;
    call.record = (await commitUpload(
      record.taskId,
      undefined,
      scope,
      this.#context,
    )) as TransferRecord<UploadState>;
  }

  #finish(response: Response, { record, method }: TusCall): Response {
    const headers = new Headers(response.headers);
    // Those of the endpoint are set for all responses alike.
    for (const name of Array.from(headers.keys()))
      if (name.startsWith("access-control-")) headers.delete(name);
    const untilMs = record === undefined ? undefined : expiresAtMs(record);
    if (record?.status === "working" && untilMs !== undefined && method !== "DELETE")
      headers.set("upload-expires", new Date(untilMs).toUTCString());
    if (method === "HEAD" && record?.data.metadata !== undefined)
      headers.set("upload-metadata", record.data.metadata);
    return new Response(method === "HEAD" ? null : response.body, { status: response.status, headers });
  }

  /** The refusal in our words. What our side threw says most; else the status of `@tus/server` does. */
  async #refuse(status: number, words: string, { error, record, method }: TusCall): Promise<Response> {
    if (isLongJobsError(error)) return this.#tell(error);
    const staged = record === undefined ? undefined : await this.#context.staging.stagedBytes(record.taskId);
    if (status === 404 || status === 410) return this.#tell(notFound());
    if (status === 409) return this.#tell(transferErrors.offset(staged ?? 0));
    if (status === 413) return this.#tell(this.#tooMuch(record, staged ?? 0));
    const isOurs = Object.values(ERRORS).some((known) => known === error) || status < 500;
    if (!isOurs) return this.#tell(error ?? new Error(words));
    return errorResponse(
      transferErrors.malformed(method, words.trim()),
      protocol,
      status < 500 ? status : 400,
    );
  }

  #tooMuch(record: TransferRecord<UploadState> | undefined, staged: number): LongJobsError {
    const { sizeBytes = null } = record?.data ?? {};
    return sizeBytes === null
      ? transferErrors.tooLarge(this.#context.maxFileBytes ?? 0)
      : transferErrors.pastSize(staged, sizeBytes);
  }

  #tell(error: unknown): Response {
    return errorResponse(tellError(error, this.#context.onError), protocol);
  }
}

const protocol = { "tus-resumable": tusVersion };

function wrongVersion(): Response {
  const error = transferErrors.malformed("Tus-Resumable", `This server speaks TUS ${tusVersion}.`);
  return errorResponse(error, { ...protocol, "tus-version": tusVersion }, 412);
}

/** The request as `@tus/server` needs it: nothing of our URL, and no header that means something else to it. */
function toInnerRequest(request: Request, method: string): Request {
  const headers = new Headers();
  for (const name of protocolHeaders) {
    const value = request.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  const body = method === "HEAD" || method === "DELETE" ? null : request.body;
  const init: RequestInit & { readonly duplex: "half" } = { method, headers, body, duplex: "half" };
  return new Request("http://transfer.invalid/upload", init);
}
