// A process that moves a large file in and out again, and tells how much memory that took.
import { mkdirSync } from "node:fs";
import { Readable } from "node:stream";
import { Upload } from "@tus/server";
import { publish } from "../../../src/disk/publish.ts";
import { createRoots } from "../../../src/disk/roots.ts";
import { StagingStore } from "../../../src/disk/staging-store.ts";
import { knownBytes } from "./known-bytes.ts";

const [staging = "", root = "", mebibytes = ""] = process.argv.slice(2);
const sizeBytes = Number(mebibytes) * 1024 * 1024;
const pieceBytes = 64 * 1024;

const store = new StagingStore({ dir: staging, flush: true });
mkdirSync(root);
const roots = createRoots({ files: { path: root, write: true } });
await store.create(new Upload({ id: "big", offset: 0, size: sizeBytes }));
const idleBytes = process.memoryUsage.rss();

await store.write(Readable.from(pieces(), { objectMode: true, highWaterMark: 1 }), "big", 0);
await using target = await roots.resolveTarget({ root: "files", path: "big.bin" });
const { sha256 } = await publish({ staged: { store, id: "big" }, target, sizeBytes, policy: "fail" });
await using file = await roots.openSource({ root: "files", path: "big.bin" });
let readBytes = 0;
for await (const piece of file.stream()) readBytes += piece.length;
const digest = await file.digest();

const peakBytes = process.resourceUsage().maxRSS * 1024;
process.send?.({ idleBytes, peakBytes, readBytes, sha256, digest });
process.disconnect();

/** Parts of one block, so that the memory that is measured is not that of the sender. */
function* pieces(): Generator<Buffer> {
  const block = knownBytes(0, 1024 * 1024);
  for (let at = 0; at < sizeBytes; at += pieceBytes) {
    const start = at % block.length;
    yield block.subarray(start, start + pieceBytes);
  }
}
