import type { ResultSpill } from "@longjobs/core";
import type { FetchOptions } from "./http/fetch-options.ts";
import type { UploadGrant } from "./http/upload-grant.ts";
import type { McpServerLike } from "./mcp-server.ts";

/** File transfer for any number of servers over one store. */
export interface Files {
  /**
   * Registers the tools on a server, and returns that server. In a factory, once per instance.
   *
   * @throws TypeError for what is no server; Error for one that is attached already, or has a tool of that name.
   */
  attach<Server extends McpServerLike>(server: Server): Server;
  /**
   * Opens the staging and checks that no root holds it, or the other way round. Every call does it first; calling it early
   * shows a bad configuration early.
   *
   * @throws TypeError
   */
  open(): Promise<void>;
  /**
   * Serves the endpoint: TUS 1.0 for uploads, GET with ranges for downloads. Every refusal is a response with an
   * envelope.
   *
   * @throws TypeError without `http` in the options
   */
  fetch(request: Request, options?: FetchOptions): Promise<Response>;
  /**
   * A URL that takes POST of TUS: for pages and programs that upload without a tool call. An upload whose metadata have
   * `sha256` is published with its last byte; others wait for a commit.
   *
   * @throws TypeError without `http` in the options, or for a root that cannot be written
   */
  createUploadUrl(grant: UploadGrant): Promise<string>;
  /**
   * Opens a file in a root for the server's own use, as clients reach it: no path leads out, and the content is pinned.
   *
   * @throws `path_not_allowed`
   */
  openFile(location: { readonly root: string; readonly path: string }): Promise<OpenedFile>;
  /**
   * A place for the large results of tasks, for `createTasks({ resultSpill })`: they stay among the staged bytes as long as
   * their task, and are read through `resources/read`, the read tool and the endpoint. Call it before {@link Files.attach}.
   *
   * @throws TypeError unless the staging is a directory
   */
  resultSpill(): ResultSpill;
  /** Deletes what has expired, now. Happens by itself every `sweepIntervalMs`. */
  sweep(): Promise<SweptTransfers>;
  /** Counts of what is held in memory; all return to zero when nothing is being transferred. */
  stats(): { readonly writers: number; readonly digests: number };
  /** Stops: writers are asked to stop, and are waited for. The store stays open. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A file that is open for reading. Once it changes, everything here rejects with `source_changed`. */
export interface OpenedFile extends AsyncDisposable {
  readonly sizeBytes: number;
  /** Bytes `start` to before `end`; by default all of them. */
  stream(start?: number, end?: number): ReadableStream<Uint8Array>;
  /** In hexadecimal; computed once per content. */
  digest(): Promise<string>;
  close(): Promise<void>;
}

/** What a sweep removed. */
export interface SweptTransfers {
  /** Expired records, ours and those of others in the same store. */
  readonly records: number;
  /** Transfers whose staged bytes were deleted. */
  readonly staged: number;
}
