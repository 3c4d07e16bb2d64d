/* Opens a log, or scans the yardstick's file, and prints what that cost: `node --expose-gc open-child.ts KIND PATH`. */
import { open } from "node:fs/promises";
import { WalTaskStore } from "@longjobs/store-wal";
import type { Opened } from "./groups/opening.ts";

const [kind, path = ""] = process.argv.slice(2);
const before = memoryNow();
const startMs = performance.now();
const opened = kind === "log" ? await WalTaskStore.open({ dir: path }) : await scanLines(path);
const openMs = performance.now() - startMs;
const memoryMb = memoryNow() - before;
const result: Opened = { openMs, memoryMb };
console.log(JSON.stringify(result));
if (opened instanceof WalTaskStore) await opened.close();

/** The least that an opening must do: read everything once, and remember where each task lies. */
async function scanLines(file: string): Promise<Map<string, number>> {
  const places = new Map<string, number>();
  await using handle = await open(file, "r");
  const chunk = Buffer.allocUnsafe(1024 * 1024);
  let rest = Buffer.alloc(0);
  for (let position = 0; ;) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.length, position);
    if (bytesRead === 0) return places;
    const bytes = Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
    let start = 0;
    for (let end = bytes.indexOf(10, start); end >= 0; end = bytes.indexOf(10, start)) {
      // The id comes first: `{"taskId":"…36 characters…"`.
      places.set(bytes.toString("latin1", start + 11, start + 47), position - rest.length + start);
      start = end + 1;
    }
    rest = Buffer.from(bytes.subarray(start));
    position += bytesRead;
  }
}

function memoryNow(): number {
  (globalThis as { gc?: () => void }).gc?.();
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1e6;
}
