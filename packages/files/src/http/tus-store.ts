import type { Readable } from "node:stream";
import { DataStore, Upload } from "@tus/server";
import { abortUnderWriter } from "../commit-upload.ts";
import type { TransferContext } from "../transfer-context.ts";
import { transferErrors } from "../transfer-errors.ts";
import { publishedFile } from "../transfer-record.ts";
import type { TransferWriter } from "../transfer-writers.ts";
import { declareSize, ensureStaged, stateOf, writeStream } from "../write-upload.ts";
import type { TusCall } from "./tus-call.ts";

/**
 * What `@tus/server` takes for its store: the operations on transfers, for one request. The record says what is
 * declared, the staging how far it is, and the writer of the request what may be written.
 */
export class TusStore extends DataStore {
  readonly #call: TusCall;
  readonly #context: TransferContext;

  constructor(call: TusCall, context: TransferContext) {
    super();
    this.#call = call;
    this.#context = context;
    this.extensions = ["creation", "creation-with-upload", "creation-defer-length", "termination"];
  }

  /** The transfer was opened when it got its name. */
  override async create(upload: Upload): Promise<Upload> {
    return upload;
  }

  override async getUpload(id: string): Promise<Upload> {
    const { record, writer } = this.#call;
    if (record === undefined) throw transferErrors.unknown();
    const state = writer === undefined ? record.data : stateOf(writer);
    const offset =
      publishedFile(record)?.size ??
      (writer === undefined
        ? ((await this.#context.staging.stagedBytes(id)) ?? 0)
        : await ensureStaged(id, state, this.#context));
    return new Upload({ id, offset, ...(state.sizeBytes === null ? {} : { size: state.sizeBytes }) });
  }

  override async declareUploadLength(_id: string, sizeBytes: number): Promise<void> {
    await declareSize(this.#writer(), sizeBytes, this.#context);
  }

  /**
   * Stages the body. Of a body with a checksum everything is stored or nothing: what cannot be verified, because the
   * connection broke, is cut off again.
   */
  override async write(stream: Readable, id: string, offset: number): Promise<number> {
    const writer = this.#writer();
    const { checksum } = this.#call;
    if (checksum === undefined) return writeStream(writer, stream, offset, this.#context);
    try {
      const end = await writeStream(writer, checksum.through(stream), offset, this.#context);
      checksum.assertMatch(offset);
      return end;
    } catch (error) {
      if ((await this.#context.staging.stagedBytes(id)) !== offset)
        await writer.stage(this.#context.staging.truncate(id, offset));
      throw error;
    }
  }

  override async remove(): Promise<void> {
    const writer = this.#writer();
    this.#call.writer = undefined;
    await abortUnderWriter(writer, this.#context);
  }

  #writer(): TransferWriter {
    const { writer } = this.#call;
    if (writer === undefined) throw new TypeError("A request writes only under its lock.");
    return writer;
  }
}
