import { fork, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ServedBench } from "../file-server.ts";
import { exchange, type Exchange } from "../http-exchange.ts";
import { alternate, inFolder, summarise } from "../measure.ts";
import { ratioOf, toFigures, toRatio, type BenchGroup, type Row } from "../row.ts";

const program = fileURLToPath(new URL("../file-server.ts", import.meta.url));
const fileName = "download.bin";
const piece = Buffer.alloc(1024 * 1024, "longjobs");

interface FileServer extends ServedBench {
  readonly process: ChildProcess;
}

/** Large files through an endpoint on the loopback interface, and the memory that its process takes for them. */
export const files: BenchGroup = async function* ({ full, progress }) {
  const mebibytes = full ? 1_024 : 128;
  const repetitions = full ? 5 : 3;
  const rows = await inFolder(async (dir) => {
    await makeFile(dir, mebibytes);
    const longjobs = await startServer("longjobs", dir);
    const bare = await startServer("bare", dir);
    const sha256 = digestOf(mebibytes);
    progress(`${mebibytes} MiB up`);
    const up = await alternate(
      new Map([
        ["longjobs", () => upload(longjobs, mebibytes)],
        ["bare @tus/server", () => upload(bare, mebibytes)],
        ["longjobs, verified and published", () => upload(longjobs, mebibytes, sha256)],
      ]),
      repetitions,
    );
    progress(`${mebibytes} MiB down`);
    const down = await alternate(
      new Map([
        ["longjobs", () => download(longjobs, mebibytes)],
        ["plain fs stream", () => download(bare, mebibytes)],
      ]),
      repetitions,
    );
    const memory = new Map([
      ["longjobs", [await stop(longjobs)]],
      ["bare @tus/server and fs stream", [await stop(bare)]],
    ]);
    return [...speedRows(mebibytes, toFigures(up), toFigures(down)), memoryRow(mebibytes, memory)];
  });
  yield* rows;
};

function speedRows(mebibytes: number, up: Row["figures"], down: Row["figures"]): Row[] {
  return [
    {
      group: "files",
      row: `${mebibytes} MiB up`,
      unit: "MiB/s",
      figures: up,
      ratios: [ratioOf(up, ["longjobs", "bare @tus/server"], "at least", 0.6)],
    },
    {
      group: "files",
      row: `${mebibytes} MiB down`,
      unit: "MiB/s",
      figures: down,
      ratios: [ratioOf(down, ["longjobs", "plain fs stream"], "at least", 0.7)],
    },
  ];
}

function memoryRow(mebibytes: number, memory: ReadonlyMap<string, number[]>): Row {
  const figures = Object.fromEntries([...memory].map(([name, values]) => [name, summarise(values)]));
  return {
    group: "files",
    row: `peak memory over the idle process, ${mebibytes} MiB up and down`,
    unit: "MiB",
    figures,
    ratios: [toRatio("longjobs", figures["longjobs"]?.median ?? Number.NaN, "at most", 96)],
  };
}

async function startServer(contestant: string, dir: string): Promise<FileServer> {
  const child = fork(program, [contestant, dir, fileName], { execArgv: [] });
  const [served] = (await once(child, "message")) as [ServedBench];
  return { ...served, process: child };
}

/** Ends a server; resolves to the memory that it took on top, in MiB. */
async function stop({ process: child }: FileServer): Promise<number> {
  child.send("memory");
  const [{ extraBytes }] = (await once(child, "message")) as [{ extraBytes: number }];
  child.kill();
  await once(child, "exit");
  return extraBytes / 2 ** 20;
}

/** MiB per second of one upload in one request. */
async function upload({ creationUrl }: FileServer, mebibytes: number, sha256?: string): Promise<number> {
  const tus = { "tus-resumable": "1.0.0" };
  const metadata = [
    `filename ${base64("upload.bin")}`,
    ...(sha256 === undefined ? [] : [`sha256 ${base64(sha256)}`]),
  ];
  const length = mebibytes * piece.length;
  const created = await exchange("POST", creationUrl, {
    ...tus,
    "upload-length": length,
    "upload-metadata": metadata.join(","),
  });
  const url = new URL(expectStatus(created, 201).headers["location"] ?? "", creationUrl).href;
  const startMs = performance.now();
  const headers = {
    ...tus,
    "upload-offset": 0,
    "content-type": "application/offset+octet-stream",
    "content-length": length,
  };
  expectStatus(await exchange("PATCH", url, headers, pieces(mebibytes)), 204);
  const elapsedMs = performance.now() - startMs;
  // Published bytes are not ours to delete; the folder goes at the end.
  if (sha256 === undefined) expectStatus(await exchange("DELETE", url, tus), 204);
  return (mebibytes / elapsedMs) * 1_000;
}

async function download({ downloadUrl }: FileServer, mebibytes: number): Promise<number> {
  const startMs = performance.now();
  const { bytes } = expectStatus(await exchange("GET", downloadUrl), 200);
  if (bytes !== mebibytes * piece.length) throw new Error(`Only ${bytes} bytes came.`);
  return (mebibytes / (performance.now() - startMs)) * 1_000;
}

function expectStatus(answer: Exchange, status: number): Exchange {
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${answer.text}`);
  return answer;
}

async function makeFile(dir: string, mebibytes: number): Promise<void> {
  await mkdir(join(dir, "box"));
  const file = await open(join(dir, "box", fileName), "wx");
  for (const part of pieces(mebibytes)) await file.write(part);
  await file.close();
}

function* pieces(mebibytes: number): Generator<Buffer> {
  for (let sent = 0; sent < mebibytes; sent += 1) yield piece;
}

function digestOf(mebibytes: number): string {
  const hash = createHash("sha256");
  for (const part of pieces(mebibytes)) hash.update(part);
  return hash.digest("hex");
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
