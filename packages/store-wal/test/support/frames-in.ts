import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { LogSegment } from "../../src/log-segment.ts";
import { nodeFiles } from "../../src/node-file-layer.ts";
import { scanSegment } from "../../src/scan-segment.ts";
import { decodeSegmentHeader, FRAMES_START } from "../../src/segment-header.ts";

/** A whole frame: whose it is, and where it lies. */
export interface FoundFrame {
  readonly taskId: string;
  readonly version: number;
  readonly offset: number;
  readonly bytes: number;
}

/** The whole frames of a file, in its order. */
export async function framesIn(dir: string, name: string): Promise<FoundFrame[]> {
  const path = join(dir, name);
  const bytes = readFileSync(path);
  const reading = decodeSegmentHeader(bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error(`${name} has no header.`);
  const found: FoundFrame[] = [];
  const file = await nodeFiles.open(path, "r");
  const options = { end: bytes.length, mayEndInZeros: true };
  await scanSegment(file, new LogSegment(reading.header), options, {
    frame: ({ header: { version }, meta: { taskId }, offset, bytes: length }) =>
      found.push({ taskId, version, offset, bytes: length }),
    damage: () => {},
  });
  await file.close();
  return found;
}

/** The frame of one write. */
export async function frameOf(
  dir: string,
  name: string,
  taskId: string,
  version: number,
): Promise<FoundFrame> {
  const frame = (await framesIn(dir, name)).find((one) => one.taskId === taskId && one.version === version);
  if (frame === undefined) throw new Error(`${name} has no version ${version} of ${taskId}.`);
  return frame;
}

/** Changes one bit. */
export function flip(dir: string, name: string, at: number): void {
  const byte = readFileSync(join(dir, name))[at] ?? 0;
  overwrite(dir, name, at, Buffer.from([byte ^ 1]));
}

/** Makes a frame look like a write that never ended: one of its sectors was not written. */
export function tear(dir: string, name: string, { offset, bytes }: FoundFrame): void {
  const sector = Math.ceil((offset + 80) / 512) * 512;
  if (sector + 512 > offset + bytes) throw new Error("No sector lies in the frame.");
  overwrite(dir, name, sector, Buffer.alloc(512));
}

function overwrite(dir: string, name: string, at: number, bytes: Buffer): void {
  const file = openSync(join(dir, name), "r+");
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}
