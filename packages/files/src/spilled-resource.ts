import { LongJobsError, type JsonObject, type RequestContext } from "@longjobs/core";
import { openSource, readableDownload } from "./read-download.ts";
import { transferIdOfUri } from "./result-spill.ts";
import { tellError } from "./tell-error.ts";
import type { Scope, TransferContext } from "./transfer-context.ts";
import { transferErrors } from "./transfer-errors.ts";

/** What reading a resource needs. */
export interface SpilledResourceContext {
  readonly transfers: TransferContext;
  readonly resolveScope: (request: RequestContext) => Promise<Scope>;
  readonly ready: () => Promise<void>;
  /** The most that an answer may hold. */
  readonly maxBytes: number;
}

const invalidParams = -32_602;
const internalError = -32_603;

/** Serves `resources/read` for spilled results, with the rights of the task. */
export async function readSpilled(
  uri: string,
  request: RequestContext,
  context: SpilledResourceContext,
): Promise<JsonObject> {
  const { maxBytes, ready, resolveScope, transfers } = context;
  try {
    await ready();
    const record = await readableDownload(transferIdOfUri(uri), await resolveScope(request), transfers);
    if (!("taskId" in record.data.source)) throw transferErrors.unknown();
    const { mediaType, pin } = record.data;
    if (pin.sizeBytes > maxBytes) throw tooLarge(pin.sizeBytes, maxBytes);
    await using file = await openSource(record, transfers);
    const bytes = Buffer.from(await file.read(0, pin.sizeBytes));
    return { contents: [{ uri, mimeType: mediaType, text: bytes.toString() }] };
  } catch (error) {
    const told = tellError(error, transfers.onError);
    const code = told.code === "internal_error" || told.retryable ? internalError : invalidParams;
    throw Object.assign(new Error(told.message), { code, data: told.toJSON() });
  }
}

function tooLarge(sizeBytes: number, maxBytes: number): LongJobsError {
  return new LongJobsError(
    "chunk_too_large",
    `The resource has ${sizeBytes} bytes; one message takes ${maxBytes}.`,
    {
      recoveryHint: "Read it in pieces with the read tool of file transfer, or from its downloadUrl.",
      partial: { maxBytes },
    },
  );
}
