import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { FrameKind } from "../../src/frame-format.ts";
import { LogSegment } from "../../src/log-segment.ts";
import { nodeFiles } from "../../src/node-file-layer.ts";
import { scanSegment } from "../../src/scan-segment.ts";
import { decodeSegmentHeader, FRAMES_START } from "../../src/segment-header.ts";

/** A whole frame of a file of the log: whose it is, and where it lies. */
export interface FrameOnDisk {
  readonly taskId: string;
  readonly version: number;
  readonly kind: FrameKind;
  readonly start: number;
  readonly end: number;
}

/** The whole frames of a file, front to back. */
export async function framesOnDisk(dir: string, name: string): Promise<FrameOnDisk[]> {
  const path = join(dir, name);
  const bytes = readFileSync(path);
  const reading = decodeSegmentHeader(bytes.subarray(0, FRAMES_START));
  if (reading.kind !== "good") throw new Error(`${name} has no header.`);
  const frames: FrameOnDisk[] = [];
  const file = await nodeFiles.open(path, "r");
  await scanSegment(
    file,
    new LogSegment(reading.header),
    { end: bytes.length, mayEndInZeros: true },
    {
      frame: ({ header: { version, kind }, meta: { taskId }, offset, bytes: length }) => {
        frames.push({ taskId, version, kind, start: offset, end: offset + length });
      },
      damage: () => {},
    },
  );
  await file.close();
  return frames;
}

/** The frame of one version of a task. */
export function frameOf(frames: readonly FrameOnDisk[], taskId: string, version: number): FrameOnDisk {
  const found = frames.find((frame) => frame.taskId === taskId && frame.version === version);
  if (found === undefined) throw new Error(`There is no frame of ${taskId} with the version ${version}.`);
  return found;
}

/** Replaces bytes of a file in place. */
export function overwrite(dir: string, name: string, at: number, bytes: Uint8Array): void {
  const file = openSync(join(dir, name), "r+");
  writeSync(file, bytes, 0, bytes.length, at);
  closeSync(file);
}
