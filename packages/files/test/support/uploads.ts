import { sha256 } from "../disk/support/bytes.ts";
import { answerOf, type Answer, type Caller, type Door } from "./doors.ts";

/** Opens an upload and gives its id. */
export async function openUpload(door: Door, wish: object = {}, caller?: Caller): Promise<string> {
  const args = { direction: "upload", path: "file.bin", ...wish };
  return String((await answerOf(door.call("file_transfer_open", args, caller)))["transferId"]);
}

/** Opens a download and gives its id. */
export async function openDownload(door: Door, path: string, caller?: Caller): Promise<string> {
  const args = { direction: "download", path };
  return String((await answerOf(door.call("file_transfer_open", args, caller)))["transferId"]);
}

/** Writes a chunk. */
export function write(
  door: Door,
  transferId: string,
  offset: number,
  bytes: Uint8Array,
  rest: object = {},
): Promise<Answer> {
  const data = Buffer.from(bytes).toString("base64");
  return door.call("file_transfer_write", { transferId, offset, data, ...rest });
}

/** Where the transfer is. */
export async function statusOf(door: Door, transferId: string): Promise<Answer["structured"]> {
  return answerOf(door.call("file_transfer_status", { transferId }));
}

/** Uploads and publishes bytes in one chunk. */
export async function publishBytes(door: Door, path: string, bytes: Uint8Array): Promise<string> {
  const transferId = await openUpload(door, { path, size: bytes.length, sha256: sha256(bytes) });
  if (bytes.length > 0) await answerOf(write(door, transferId, 0, bytes));
  await answerOf(door.call("file_transfer_commit", { transferId }));
  return transferId;
}
