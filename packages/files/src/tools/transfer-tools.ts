import type { JsonObject, RequestContext } from "@longjobs/core";
import { z } from "zod";
import { abortTransfer, commitUpload } from "../commit-upload.ts";
import { decodeBase64, decodedBytes } from "../decode-base64.ts";
import { describeTransfer, toJson } from "../describe-transfer.ts";
import type { TransferUrls } from "../http/transfer-urls.ts";
import { openDownload, openUpload } from "../open-transfer.ts";
import { readChunk, startDigest } from "../read-download.ts";
import { tellError } from "../tell-error.ts";
import { readTransfer, type Scope, type TransferContext } from "../transfer-context.ts";
import { transferErrors } from "../transfer-errors.ts";
import { isDownload, type TransferRecord } from "../transfer-record.ts";
import { writableUpload, writeChunk } from "../write-upload.ts";
import { errorReply, reply, type ToolParts, type TransferTool } from "./transfer-tool.ts";

/** What the tools need. */
export interface ToolsContext {
  readonly transfers: TransferContext;
  /** Absent where there is no endpoint. */
  readonly urls: TransferUrls | undefined;
  readonly resolveScope: (request: RequestContext) => Promise<Scope>;
  /** Rejects with what is wrong with the configuration. */
  readonly ready: () => Promise<void>;
  readonly prefix: string;
  readonly rootNames: { readonly read: readonly string[]; readonly write: readonly string[] };
}

const transferId = z.string().describe("The id that open gave.");
const sha256 = z.string().describe("64 hexadecimal digits.");

/** What all tools answer with. */
const replySchema = z.looseObject({
  transferId: z.string().optional(),
  direction: z.enum(["upload", "download"]).optional(),
  status: z.enum(["open", "committed", "aborted"]).optional(),
  root: z.string().optional(),
  path: z.string().optional(),
  offset: z.number().optional(),
  nextOffset: z.number().optional(),
  size: z.number().nullable().optional(),
  sha256: z.string().optional(),
  mediaType: z.string().optional(),
  chunkBytes: z.number().optional(),
  uploadUrl: z.string().optional(),
  downloadUrl: z.string().optional(),
  expiresAt: z.string().optional(),
  digest: z.looseObject({ doneBytes: z.number(), totalBytes: z.number() }).optional(),
  data: z.string().optional(),
  length: z.number().optional(),
  total: z.number().optional(),
  eof: z.boolean().optional(),
  chunkSha256: z.string().optional(),
  next: z.string().optional(),
  error: z.looseObject({ code: z.string(), message: z.string(), retryable: z.boolean() }).optional(),
});

/** The six tools, in the order they are listed. */
export function createTransferTools(context: ToolsContext): readonly TransferTool[] {
  return [
    openTool(context),
    writeTool(context),
    readTool(context),
    commitTool(context),
    statusTool(context),
    abortTool(context),
  ].map((parts) => toTool(parts as ToolParts<unknown>, context));
}

function openTool(context: ToolsContext): ToolParts<{
  readonly direction: "upload" | "download";
  readonly root?: string;
  readonly path: string;
  readonly size?: number;
  readonly sha256?: string;
  readonly ifExists?: "fail" | "replace" | "version";
}> {
  const { prefix, rootNames, transfers, urls } = context;
  const roots = `Roots to upload to: ${rootNames.write.join(", ") || "none"}; to download from: ${rootNames.read.join(", ") || "none"}.`;
  return {
    name: `${prefix}_open`,
    config: {
      title: "Open a file transfer",
      description:
        `Starts the upload or download of a file. ${roots} ` +
        "An upload becomes visible only when it is committed and its sha256 matches.",
      inputSchema: z.object({
        direction: z.enum(["upload", "download"]),
        root: z.string().optional().describe("Which root; not needed if there is one."),
        path: z.string().describe("Path inside the root, with forward slashes."),
        size: z.number().optional().describe("Upload: bytes in all, if known."),
        sha256: sha256
          .optional()
          .describe("Upload: sha256 of the whole file, 64 hexadecimal digits, if known."),
        ifExists: z
          .enum(["fail", "replace", "version"])
          .optional()
          .describe('Upload: what happens if the path is taken. Default "fail".'),
      }),
      outputSchema: replySchema,
      annotations: {
        readOnlyHint: false,
        idempotentHint: false,
        destructiveHint: false,
        openWorldHint: false,
      },
    },
    run: async ({ direction, ...wish }, scope) => {
      const record =
        direction === "upload"
          ? await openUpload(wish, scope, transfers)
          : await openDownload(wish, scope, transfers);
      return reply({ ...(await viewOf(record, context)), next: nextStep(record, context, urls) });
    },
  };
}

function writeTool(context: ToolsContext): ToolParts<{
  readonly transferId: string;
  readonly offset: number;
  readonly data: string;
  readonly sha256?: string;
}> {
  const { prefix, transfers, urls } = context;
  return {
    name: `${prefix}_write`,
    config: {
      title: "Write a chunk of an upload",
      description:
        `Stores one chunk of an upload, at most ${transfers.maxWriteBytes} bytes, in order. For anything large send ` +
        "the file to uploadUrl instead, if open gave one. After an error go on at the offset it names; never start over.",
      inputSchema: z.object({
        transferId,
        offset: z
          .number()
          .describe("Where the chunk starts: nextOffset of the last answer, 0 for the first."),
        data: z.string().describe("The bytes, base64."),
        sha256: sha256.optional().describe("sha256 of this chunk, to have it checked."),
      }),
      outputSchema: replySchema,
      annotations: {
        readOnlyHint: false,
        idempotentHint: true,
        destructiveHint: false,
        openWorldHint: false,
      },
    },
    run: async (args, scope) => {
      if (!transfers.staging.abilities.smallWrites)
        await refuseSmallWrites(args.transferId, scope, transfers, urls);
      const { maxWriteBytes } = transfers;
      // By the length of the text: a chunk that is too large is not even decoded.
      const length = decodedBytes(args.data);
      if (length > maxWriteBytes) throw transferErrors.chunkTooLarge("data", length, maxWriteBytes);
      const { record, stagedBytes } = await writeChunk(
        args.transferId,
        { offset: args.offset, bytes: decodeBase64(args.data), sha256: args.sha256 },
        scope,
        transfers,
      );
      const size = record.data.sizeBytes;
      return reply({
        transferId: record.taskId,
        status: "open",
        nextOffset: stagedBytes,
        size,
        next:
          stagedBytes === size
            ? `All bytes are there. Call ${prefix}_commit.`
            : `Send the next chunk at offset ${stagedBytes}${size === null ? `, or call ${prefix}_commit after the last` : ""}.`,
      });
    },
  };
}

function readTool(context: ToolsContext): ToolParts<{
  readonly transferId: string;
  readonly offset: number;
  readonly length?: number;
}> {
  const { prefix, transfers } = context;
  return {
    name: `${prefix}_read`,
    config: {
      title: "Read a chunk of a download",
      description:
        "Reads one piece of a download as base64. For anything large get downloadUrl instead, if open gave one. " +
        "If the answer says source_changed, throw away what you have and open the download again.",
      inputSchema: z.object({
        transferId,
        offset: z.number().describe("Where to read; nextOffset of the last answer, 0 for the first."),
        length: z
          .number()
          .optional()
          .describe(
            `Bytes to read, at most ${transfers.maxReadBytes}. Default ${Math.min(65_536, transfers.maxReadBytes)}.`,
          ),
      }),
      outputSchema: replySchema,
      annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false },
    },
    run: async (args, scope) => {
      const {
        record,
        offset,
        bytes,
        totalBytes,
        sha256: chunkSha256,
      } = await readChunk(args.transferId, args, scope, transfers);
      const nextOffset = offset + bytes.length;
      const { sha256: whole } = record.data;
      return reply({
        transferId: record.taskId,
        offset,
        length: bytes.length,
        total: totalBytes,
        nextOffset,
        eof: nextOffset === totalBytes,
        chunkSha256,
        ...(whole === undefined ? {} : { sha256: whole }),
        data: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
      });
    },
  };
}

function commitTool(
  context: ToolsContext,
): ToolParts<{ readonly transferId: string; readonly sha256?: string }> {
  const { prefix, transfers } = context;
  return {
    name: `${prefix}_commit`,
    config: {
      title: "Commit an upload",
      description:
        "Publishes an upload when all its bytes are there and their sha256 matches. A refused commit leaves the " +
        "transfer open: do what the answer says and commit again.",
      inputSchema: z.object({
        transferId,
        sha256: sha256
          .optional()
          .describe("sha256 of the whole file, unless open got it. 64 hexadecimal digits."),
      }),
      outputSchema: replySchema,
      annotations: { readOnlyHint: false, idempotentHint: true, destructiveHint: true, openWorldHint: false },
    },
    run: async (args, scope) =>
      reply(await viewOf(await commitUpload(args.transferId, args.sha256, scope, transfers), context)),
  };
}

function statusTool(context: ToolsContext): ToolParts<{ readonly transferId: string }> {
  const { prefix, transfers } = context;
  return {
    name: `${prefix}_status`,
    config: {
      title: "Get the status of a transfer",
      description:
        "Says how far a transfer is and gives its URL anew. offset is where an upload goes on after any interruption.",
      inputSchema: z.object({ transferId }),
      outputSchema: replySchema,
      annotations: { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false },
    },
    run: async (args, scope) => {
      const record = await readTransfer(args.transferId, scope, transfers);
      // Its computation may have ended with the process that began it.
      if (isDownload(record) && record.status === "working" && record.data.sha256 === undefined)
        startDigest(record, transfers);
      return reply(await viewOf(record, context));
    },
  };
}

function abortTool(context: ToolsContext): ToolParts<{ readonly transferId: string }> {
  const { prefix, transfers } = context;
  return {
    name: `${prefix}_abort`,
    config: {
      title: "Abort a transfer",
      description: "Ends a transfer and deletes what was sent. Published files are not touched.",
      inputSchema: z.object({ transferId }),
      outputSchema: replySchema,
      annotations: { readOnlyHint: false, idempotentHint: true, destructiveHint: true, openWorldHint: false },
    },
    run: async (args, scope) =>
      reply(await viewOf(await abortTransfer(args.transferId, "tool", scope, transfers), context)),
  };
}

/** @throws `invalid_request` with the URL that takes the bytes; what is wrong with the transfer first. */
async function refuseSmallWrites(
  id: string,
  scope: Scope,
  transfers: TransferContext,
  urls: TransferUrls | undefined,
): Promise<never> {
  const record = await writableUpload(id, scope, transfers);
  throw transferErrors.smallWrites(await urls?.urlOf(record));
}

async function viewOf(record: TransferRecord, { transfers, urls }: ToolsContext): Promise<JsonObject> {
  return toJson(await describeTransfer(record, transfers, urls));
}

function nextStep(
  { data }: TransferRecord,
  { prefix, transfers }: ToolsContext,
  urls: TransferUrls | undefined,
): string {
  if (data.direction === "download")
    return urls === undefined
      ? `Call ${prefix}_read from offset 0.`
      : `Get downloadUrl, or call ${prefix}_read from offset 0.`;
  const byTool = transfers.staging.abilities.smallWrites ? `call ${prefix}_write from offset 0` : undefined;
  const byUrl = urls === undefined ? undefined : "upload to uploadUrl with a TUS client";
  const ways = [byUrl, byTool].filter((way) => way !== undefined).join(", or ");
  return `Now ${ways}; then call ${prefix}_commit.`;
}

/** What a model can repair comes back as a tool error with the envelope, and so does everything else. */
function toTool({ run, ...parts }: ToolParts<unknown>, context: ToolsContext): TransferTool {
  const { ready, resolveScope, transfers } = context;
  return {
    ...parts,
    serve: async (args, request) => {
      try {
        await ready();
        return await run(args, await resolveScope(request));
      } catch (error) {
        return errorReply(tellError(error, transfers.onError));
      }
    },
  };
}
