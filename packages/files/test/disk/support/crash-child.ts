// A process that stages or publishes until it is killed. Told by its arguments, tells its parent how far it is.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { Readable } from "node:stream";
import { publish, type PublishNote, type PublishPolicy } from "../../../src/disk/publish.ts";
import { createRoots } from "../../../src/disk/roots.ts";
import { StagingStore } from "../../../src/disk/staging-store.ts";
import { knownBytes } from "./known-bytes.ts";

/** What the child is to do. */
export interface CrashTask {
  readonly act: "stage" | "publish";
  readonly dir: string;
  readonly flush: boolean;
  readonly id: string;
  readonly sizeBytes: number;
  readonly sha256?: string;
  readonly root?: string;
  readonly policy?: PublishPolicy;
  /** Where the note of the publishing is kept. */
  readonly noteFile?: string;
}

const task = JSON.parse(process.argv[2] ?? "") as CrashTask;
const store = new StagingStore({ dir: task.dir, flush: task.flush });
await (task.act === "stage" ? stageAll() : publishAll());
process.disconnect();

/** Tells the new offset after each acknowledged write, and each piece before it is acknowledged. */
async function stageAll(): Promise<void> {
  const { id, sizeBytes } = task;
  for (let offset = await store.stagedBytes(id); offset < sizeBytes;) {
    const end = Math.min(offset + 300_000, sizeBytes);
    offset = await store.write(Readable.from(pieces(offset, end)), id, offset);
    process.send?.({ acknowledged: offset });
  }
}

function* pieces(start: number, end: number): Generator<Buffer> {
  for (let at = start; at < end; at += 10_007) {
    process.send?.({ sending: at });
    yield knownBytes(at, Math.min(10_007, end - at));
  }
}

async function publishAll(): Promise<void> {
  const { id, sizeBytes, sha256 = "", root = "", policy = "fail", noteFile = "" } = task;
  const roots = createRoots({ files: { path: root, write: true } });
  const target = await roots.resolveTarget({ root: "files", path: "out.bin" });
  const prepared = readNote(noteFile);
  process.send?.({ step: "start" });
  const published = await publish({
    staged: { store, id },
    target,
    sizeBytes,
    sha256,
    policy,
    ...(prepared === undefined ? {} : { prepared }),
    onPrepared: (note) => {
      writeFileSync(`${noteFile}.new`, JSON.stringify(note), { flush: true });
      renameSync(`${noteFile}.new`, noteFile);
      process.send?.({ step: "prepared" });
    },
    onProgress: () => void process.send?.({ step: "read" }),
  });
  process.send?.({ published: published.location.path });
}

function readNote(path: string): PublishNote | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as PublishNote;
  } catch {
    return undefined; // Not prepared yet.
  }
}
