import {
  liveOwners,
  reportBackgroundError,
  scopeResolver,
  TaskWriter,
  type ResultSpill,
} from "@longjobs/core";
import { DigestWork } from "./digest-work.ts";
import { createRoots } from "./disk/roots.ts";
import type { Files, OpenedFile, SweptTransfers } from "./files.ts";
import type { FetchOptions } from "./http/fetch-options.ts";
import { FilesEndpoint } from "./http/files-endpoint.ts";
import { SigningKeys } from "./http/signing-keys.ts";
import { TransferUrls } from "./http/transfer-urls.ts";
import type { UploadGrant } from "./http/upload-grant.ts";
import type { McpServerLike } from "./mcp-server.ts";
import type { FilesOptions } from "./options.ts";
import { resolveFilesOptions, type ResolvedFilesOptions } from "./resolve-options.ts";
import { QuotaLedger } from "./quota-ledger.ts";
import { StagedResultSpill, spillUri, transferIdOfUri } from "./result-spill.ts";
import { attachTools, type ResourceReader } from "./sdk-server.ts";
import { readSpilled } from "./spilled-resource.ts";
import { toStaging } from "./staging.ts";
import { sweepTransfers } from "./sweep-transfers.ts";
import { configurationError } from "./tell-error.ts";
import { createTransferTools } from "./tools/transfer-tools.ts";
import type { TransferTool } from "./tools/transfer-tool.ts";
import type { TransferContext } from "./transfer-context.ts";
import { TransferLocks } from "./transfer-locks.ts";
import { transferKind } from "./transfer-record.ts";
import { transferErrors } from "./transfer-errors.ts";
import { TransferWriters } from "./transfer-writers.ts";

/**
 * Makes file transfer over a store: one object per store and process, attached to every server instance with
 * {@link Files.attach}.
 *
 * @throws TypeError, RangeError for its options
 */
export function createFiles(options: FilesOptions): Files {
  return new AttachedFiles(options, resolveFilesOptions(options));
}

/** {@link createFiles} and `attach` in one, for a process with one server. */
export function withFileTransfer(server: McpServerLike, options: FilesOptions): Files {
  const files = createFiles(options);
  files.attach(server);
  return files;
}

/** What stands beside the data of a chunk in a message: the frame, ids, and what hosts put into `_meta`. */
const messageFrameBytes = 4 * 1024;

class AttachedFiles implements Files {
  readonly #options: ResolvedFilesOptions;
  readonly #context: TransferContext;
  readonly #tools: readonly TransferTool[];
  readonly #urls: TransferUrls | undefined;
  readonly #endpoint: FilesEndpoint | undefined;
  readonly #resources: ResourceReader;
  readonly #owner: string;
  #spill: StagedResultSpill | undefined;
  readonly #closing = new AbortController();
  #opened: Promise<void> | undefined;
  #sweepTimer: ReturnType<typeof setInterval> | undefined;
  #sweeping: Promise<SweptTransfers> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: FilesOptions, resolved: ResolvedFilesOptions) {
    this.#options = resolved;
    this.#owner = resolved.randomId();
    this.#context = createContext(options, resolved, this.#owner, this.#closing.signal);
    const context = this.#context;
    const urls = createUrls(options, resolved);
    const ready = (): Promise<void> => this.open();
    const resolveScope = scopeResolver(options.scope, {
      factory: "createFiles",
      things: "transfers",
      refuse: configurationError,
      failed: (thrown) => thrown,
    });
    this.#tools = createTransferTools({
      urls,
      ready,
      resolveScope,
      transfers: context,
      prefix: resolved.toolPrefix,
      rootNames: { read: context.roots.names("read"), write: context.roots.names("write") },
    });
    this.#resources = {
      name: "task-result",
      title: "Result of a task",
      description: "The whole result of a task that was too large for its answer.",
      uriTemplate: spillUri("{transferId}"),
      isNamed: (uri) => transferIdOfUri(uri) !== undefined,
      read: (uri, request) =>
        readSpilled(uri, request, {
          ready,
          resolveScope,
          transfers: context,
          maxBytes: context.maxResourceBytes,
        }),
    };
    this.#urls = urls;
    if (urls !== undefined && resolved.http !== undefined)
      this.#endpoint = new FilesEndpoint({ context, urls, ready, resolveScope, http: resolved.http });
    liveOwners().add(this.#owner);
  }

  attach<Server extends McpServerLike>(server: Server): Server {
    attachTools(server, this.#tools, this.#spill === undefined ? undefined : this.#resources);
    return server;
  }

  async fetch(request: Request, options: FetchOptions = {}): Promise<Response> {
    if (this.#endpoint === undefined) throw noEndpoint();
    return this.#endpoint.fetch(request, options);
  }

  async createUploadUrl(grant: UploadGrant): Promise<string> {
    if (this.#urls === undefined) throw noEndpoint();
    await this.open();
    const writable = this.#context.roots.names("write");
    if (!writable.includes(grant.root))
      throw new TypeError(
        `${JSON.stringify(grant.root)} is none of the roots that can be written: ${writable.join(", ")}.`,
      );
    return this.#urls.creationUrl(grant);
  }

  async openFile(location: { readonly root: string; readonly path: string }): Promise<OpenedFile> {
    await this.open();
    return this.#context.roots.openSource(location);
  }

  resultSpill(): ResultSpill {
    this.#spill ??= new StagedResultSpill(this.#context, () => this.open());
    return this.#spill;
  }

  async open(): Promise<void> {
    if (this.#closed !== undefined) throw transferErrors.shutdown();
    this.#opened ??= this.#open();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  async sweep(): Promise<SweptTransfers> {
    await this.open();
    this.#sweeping ??= sweepTransfers(this.#context).finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  stats(): { readonly writers: number; readonly digests: number } {
    return { writers: this.#context.locks.size, digests: this.#context.digests.size };
  }

  async close(): Promise<void> {
    this.#closed ??= this.#close();
    await this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #open(): Promise<void> {
    const { ownDirs, sweepIntervalMs } = this.#options;
    const { roots, staging } = this.#context;
    await roots.check(ownDirs);
    await staging.local?.open();
    if (sweepIntervalMs === null) return;
    this.#sweepTimer = setInterval(() => void this.#sweepInBackground(), sweepIntervalMs);
    this.#sweepTimer.unref();
  }

  async #sweepInBackground(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      if (this.#closed === undefined) reportBackgroundError(error, this.#context.onError);
    }
  }

  async #close(): Promise<void> {
    clearInterval(this.#sweepTimer);
    this.#closing.abort(transferErrors.shutdown());
    this.#context.locks.stopAll();
    await this.#context.locks.settled();
    await this.#context.digests.settled();
    await this.#sweeping?.catch(heard);
    // Last: from here on others may take over what this instance left behind.
    liveOwners().delete(this.#owner);
  }
}

function noEndpoint(): TypeError {
  return new TypeError("There is no endpoint: pass http: { baseUrl } to createFiles.");
}

/** Whoever asked for the sweep hears of its failure. */
function heard(): void {}

function createContext(
  { store, onError, roots }: FilesOptions,
  resolved: ResolvedFilesOptions,
  owner: string,
  closing: AbortSignal,
): TransferContext {
  const { leaseMs, limits, maxMessageBytes, monotonicMs, now, random, staleWriterMs } = resolved;
  const room = maxMessageBytes - messageFrameBytes;
  const writer = new TaskWriter({ store, now, random, kind: transferKind }, () => undefined);
  const locks = new TransferLocks({ staleWriterMs, stopGraceMs: leaseMs, monotonicMs });
  return {
    store,
    writer,
    locks,
    closing,
    onError,
    now,
    random,
    leaseMs,
    randomId: resolved.randomId,
    idleMs: resolved.idleMs,
    maxLifetimeMs: resolved.maxLifetimeMs,
    retentionMs: resolved.retentionMs,
    maxFileBytes: limits.maxFileBytes,
    // Base64 takes four bytes for three. An answer has the data twice: as text and as structure.
    maxWriteBytes: Math.floor(room / 4) * 3,
    // JSON text in JSON text: a quote takes two bytes.
    maxResourceBytes: Math.floor(room / 2),
    maxReadBytes: Math.floor(room / 8) * 3,
    writers: new TransferWriters({ ...resolved, store, writer, locks, owner, onError }),
    ledger: new QuotaLedger({ store, now, random, ...limits }),
    staging: toStaging(resolved.staging),
    roots: createRoots(roots),
    digests: new DigestWork(closing, onError),
  };
}

function createUrls({ store }: FilesOptions, { http, now }: ResolvedFilesOptions): TransferUrls | undefined {
  if (http === undefined) return undefined;
  const { baseUrl, downloadUrlMs, secrets } = http;
  return new TransferUrls({ baseUrl, downloadUrlMs, now, keys: new SigningKeys(store, secrets, now) });
}
