import type { TransferWriter } from "../transfer-writers.ts";
import type { Scope } from "../transfer-context.ts";
import type { TransferRecord, UploadState } from "../transfer-record.ts";
import type { GrantClaims } from "./transfer-urls.ts";
import type { UploadChecksum } from "./upload-checksum.ts";

/** One request on its way through `@tus/server`: what our side of it needs to know. */
export interface TusCall {
  readonly method: string;
  readonly scope: Scope;
  readonly checksum: UploadChecksum | undefined;
  /** Of a creation. */
  readonly grant: GrantClaims | undefined;
  /** The transfer; of a creation, as soon as it is open. */
  record: TransferRecord<UploadState> | undefined;
  /** The URL of the transfer, of a creation. */
  location: string | undefined;
  /** While the request may write. */
  writer: TransferWriter | undefined;
  /** What our side threw, so that the response can tell it. */
  error: unknown;
}
