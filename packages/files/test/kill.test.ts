import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { ChildServer } from "./support/child-server.ts";
import { patch, tus } from "./support/http.ts";
import { SeededRandom } from "./support/seeded-random.ts";
import { makeDir, namesIn } from "./support/started-files.ts";

// More in a long run: LONGJOBS_KILLS=200.
const kills = Number(process.env["LONGJOBS_KILLS"] ?? 20);

/** How the chunks of an upload travel. */
const ways = ["tool", "tus", "mixed"] as const;

interface Upload {
  readonly way: (typeof ways)[number];
  readonly path: string;
  readonly bytes: Buffer;
  transferId: string | undefined;
  /** The most that was ever acknowledged. */
  acknowledged: number;
}

// CASES part 2, files: "resume after a restart always fails"; "stdio: killing the client kills the server".
test(`P58: killed at random ${kills} times during uploads by tool, by TUS and mixed: each ends with the right sha256`, async () => {
  const random = new SeededRandom();
  console.log(`LONGJOBS_SEED=${random.seed}`);
  const dir = await makeDir();
  await mkdir(join(dir, "box"));
  let upload = begin(0, random);
  let finished = 0;
  const published: (string | undefined)[] = [];
  /** Openings that were under way when the server died: whether they happened nobody knows. */
  let unheard = 0;
  for (let killed = 0; killed < kills || upload.acknowledged > 0;) {
    const server = await ChildServer.start(dir);
    const isLast = killed >= kills;
    try {
      upload = await drive(server, upload, { random, dir, until: isLast ? Infinity : 1 + random.below(12) });
      finished += 1;
      published.push(upload.transferId);
      expect(sha256(await readFile(join(dir, "box", upload.path)))).toBe(sha256(upload.bytes));
      upload = begin(finished, random);
    } catch (error) {
      // What fetch says when its server dies is no fault; everything else is, a broken expectation above all.
      if (!server.wasKilled || !(error instanceof TypeError)) throw error;
      if (upload.transferId === undefined) unheard += 1;
    }
    await server.kill();
    killed += 1;
    if (upload.transferId !== undefined) await assertOffset(dir, upload);
  }
  console.log(`${finished} uploads were finished`);
  expect(finished).toBeGreaterThanOrEqual(kills / 20);
  // Nothing is left of what was finished, and nothing else but openings that nobody heard of, which expire.
  const names = (await namesIn(join(dir, "staging"))).filter((name) => !/secret/.test(name));
  const left = new Set(names.map((name) => name.split(".")[0]));
  expect(published).not.toContain(undefined);
  expect(published.filter((transferId) => left.has(transferId))).toEqual([]);
  expect(left.size).toBeLessThanOrEqual(unheard);
}, 1_800_000);

function begin(index: number, random: SeededRandom): Upload {
  return {
    way: ways[index % ways.length] ?? "mixed",
    path: `file${index}.bin`,
    bytes: someBytes(random.pick([0, 1, 65_536, 500_000, 2_000_000])),
    transferId: undefined,
    acknowledged: 0,
  };
}

interface Drive {
  readonly random: SeededRandom;
  readonly dir: string;
  /** The server is killed at some moment after so many chunks. */
  readonly until: number;
}

/** Goes on with an upload until it is published; rejects when the server is killed. */
async function drive(server: ChildServer, upload: Upload, { random, dir, until }: Drive): Promise<Upload> {
  const { bytes, path, way } = upload;
  let left = until;
  const soonKilled = (): void => {
    if ((left -= 1) === 0) setTimeout(() => void server.kill(), random.below(15));
  };
  soonKilled();
  if (upload.transferId === undefined) {
    const wish = { direction: "upload", path, size: bytes.length, sha256: sha256(bytes) };
    const opened = await server.call("file_transfer_open", wish);
    expect(opened.error).toBeUndefined();
    upload.transferId = String(opened["transferId"]);
  }
  const { transferId } = upload;
  const status = await server.call("file_transfer_status", { transferId });
  expect(status.error).toBeUndefined();
  if (status["status"] === "open") {
    let offset = Number(status["offset"]);
    // What was acknowledged survives the process; a new one says so at once, whatever its predecessor was doing.
    if (!(await isMoved(dir, path))) expect(offset).toBeGreaterThanOrEqual(upload.acknowledged);
    // The address of the server has changed with its process; what is signed has not.
    const url = new URL(String(status["uploadUrl"]));
    const head = await fetch(url, { method: "HEAD", headers: tus });
    expect([head.status, head.headers.get("upload-offset")]).toEqual([200, String(offset)]);
    while (offset < bytes.length) {
      const chunk = bytes.subarray(offset, offset + 1 + random.below(65_536));
      const byTool = way === "tool" || (way === "mixed" && random.next() < 0.5);
      soonKilled();
      offset = byTool
        ? await writeByTool(server, transferId, offset, chunk)
        : await writeByTus(url.href, offset, chunk);
      upload.acknowledged = offset;
    }
  }
  soonKilled();
  const committed = await server.call("file_transfer_commit", { transferId });
  expect(committed).toMatchObject({ status: "committed", sha256: sha256(bytes) });
  left = 0;
  return upload;
}

async function writeByTool(
  server: ChildServer,
  transferId: string,
  offset: number,
  chunk: Buffer,
): Promise<number> {
  const written = await server.call("file_transfer_write", {
    transferId,
    offset,
    data: chunk.toString("base64"),
  });
  expect(written["nextOffset"]).toBe(offset + chunk.length);
  return offset + chunk.length;
}

async function writeByTus(url: string, offset: number, chunk: Buffer): Promise<number> {
  const response = await patch(url, offset, chunk);
  expect(response.status).toBe(204);
  return Number(response.headers.get("upload-offset"));
}

/** After a kill: what was acknowledged is on the disk, in the staging or under its name. */
async function assertOffset(dir: string, { acknowledged, path, transferId }: Upload): Promise<void> {
  if (await isMoved(dir, path)) return;
  const names = (await namesIn(join(dir, "staging"))).filter((name) => name.includes(transferId ?? ""));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(dir, "staging", name))).size));
  expect(Math.max(0, ...sizes)).toBeGreaterThanOrEqual(acknowledged);
}

async function isMoved(dir: string, path: string): Promise<boolean> {
  return (await namesIn(join(dir, "box"))).includes(path);
}
