import type { Lock, Locker } from "@tus/server";
import type { TransferContext } from "../transfer-context.ts";
import type { TransferRecord, UploadState } from "../transfer-record.ts";
import type { TransferWriter } from "../transfer-writers.ts";
import { takeUpload } from "../write-upload.ts";
import type { TusCall } from "./tus-call.ts";

/** A question about an upload waits for nobody. */
const noLock: Lock = { lock: async () => undefined, unlock: async () => undefined };

/** The same right to write as that of the tools, for one request. */
export function tusLocker(call: TusCall, context: TransferContext): Locker {
  return { newLock: (id) => (call.method === "HEAD" ? noLock : new TusLock(id, call, context)) };
}

class TusLock implements Lock {
  readonly #id: string;
  readonly #call: TusCall;
  readonly #context: TransferContext;

  constructor(id: string, call: TusCall, context: TransferContext) {
    this.#id = id;
    this.#call = call;
    this.#context = context;
  }

  async lock(_signal: AbortSignal, stop: () => void | Promise<void>): Promise<void> {
    const writer = await takeUpload(this.#id, "request", this.#call.scope, this.#context);
    this.#call.writer = writer;
    writer.signal.addEventListener("abort", () => void stop(), { once: true });
  }

  /** Waits for what is being staged, and moves the expiry. A transfer that was ended meanwhile has no writer left. */
  async unlock(): Promise<void> {
    const { writer } = this.#call;
    this.#call.writer = undefined;
    if (writer !== undefined) this.#call.record = await endWriter(writer);
  }
}

async function endWriter(writer: TransferWriter): Promise<TransferRecord<UploadState>> {
  return (await writer.end()) as TransferRecord<UploadState>;
}
