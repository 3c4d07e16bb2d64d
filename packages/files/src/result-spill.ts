import { createHash } from "node:crypto";
import type { ResultSpill, ResultToSpill, SpilledResult } from "@longjobs/core";
import type { FilePin } from "./disk/pinned-file.ts";
import { PinnedFile } from "./disk/pinned-file.ts";
import type { StagingStore } from "./disk/staging-store.ts";
import { draftTransfer } from "./open-transfer.ts";
import type { TransferContext } from "./transfer-context.ts";
import { newDownloadState } from "./transfer-record.ts";

/** Longer than the clock of a store may differ from ours. */
const marginMs = 3_600_000;

const scheme = "longjobs-result:";

/** The name of a spilled result for `resources/read`. */
export function spillUri(transferId: string): string {
  return `${scheme}${transferId}`;
}

/** The transfer behind such a name. */
export function transferIdOfUri(uri: string): string | undefined {
  return uri.startsWith(scheme) ? uri.slice(scheme.length) : undefined;
}

/** Keeps the large results of tasks among the staged bytes, each as a download that belongs to its task. */
export class StagedResultSpill implements ResultSpill {
  readonly #context: TransferContext;
  readonly #staging: StagingStore;
  readonly #ready: () => Promise<void>;

  /** @throws TypeError where the staging is elsewhere: a download is pinned to a file of this disk */
  constructor(context: TransferContext, ready: () => Promise<void>) {
    const { local } = context.staging;
    if (local === undefined) throw new TypeError("Results can be spilled to a staging directory alone.");
    this.#context = context;
    this.#staging = local;
    this.#ready = ready;
  }

  /** Order: the record first, then the bytes, which a sweep takes for garbage without it; then what they are. */
  async spill(result: ResultToSpill): Promise<SpilledResult> {
    await this.#ready();
    const { name, mediaType, bytes, taskId, scope, untilMs } = result;
    const { store, staging, now, writer } = this.#context;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const state = newDownloadState({ source: { taskId }, name, mediaType, sha256, pin: nothingYet });
    const ttlMs = untilMs === null ? null : Math.max(0, untilMs - now()) + marginMs;
    const draft = { ...draftTransfer(state, scope, this.#context), ttlMs };
    const transferId = draft.taskId;
    const spilled = {
      uri: spillUri(transferId),
      transferId,
      name,
      mimeType: mediaType,
      size: bytes.length,
      sha256,
    };
    await store.create(draft);
    try {
      await staging.create(transferId, bytes.length);
      await staging.write(transferId, 0, once(bytes));
      const pin = await this.#pin(transferId);
      await writer.write(transferId, () => ({ data: { ...state, pin } }));
      return spilled;
    } catch (error) {
      await this.discard(spilled);
      throw error;
    }
  }

  async discard({ transferId }: SpilledResult): Promise<void> {
    await this.#ready();
    const { store } = this.#context;
    const record = await store.get(transferId);
    // The record first: from here on nobody reads it, and a sweep finds the bytes if the next step does not.
    if (record !== undefined) await store.update(transferId, { ttlMs: 0 }, record.version);
    await this.#staging.discard(transferId);
  }

  async #pin(transferId: string): Promise<FilePin> {
    await using file = await PinnedFile.open(await this.#staging.openStaged(transferId));
    return file.pin;
  }
}

/** No file has it: whoever reads before the bytes are there is told that they changed. */
const nothingYet: FilePin = { dev: "0", ino: "0", sizeBytes: 0, mtimeNs: "0", ctimeNs: "0" };

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
