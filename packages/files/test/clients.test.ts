import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

import { Upload } from "tus-js-client";
import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { expectSame } from "./support/same-bytes.ts";
import { answerOf, type Door } from "./support/doors.ts";
import { serveFiles } from "./support/http.ts";
import { openUpload, statusOf } from "./support/uploads.ts";

const run = promisify(execFile);
const bytes = someBytes(3_000_000);

async function openUrl(door: Door): Promise<{ id: string; url: string }> {
  const id = await openUpload(door, { size: bytes.length, sha256: sha256(bytes) });
  return { id, url: String((await statusOf(door, id))["uploadUrl"]) };
}

type UploadOptions = ConstructorParameters<typeof Upload>[1];

function upload(
  source: Buffer,
  options: UploadOptions,
  onStart: (started: Upload) => void = () => undefined,
): Promise<Upload> {
  return new Promise((resolve, reject) => {
    const started = new Upload(source as never, {
      retryDelays: null,
      ...options,
      onError: reject,
      onSuccess: () => resolve(started),
    });
    onStart(started);
    started.start();
  });
}

describe("tus-js-client 4", () => {
  test("uploads to the URL that a tool gave", async () => {
    const { door, box } = await serveFiles();
    const { id, url } = await openUrl(door);
    await upload(bytes, { uploadUrl: url, chunkSize: 1_000_000 });
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("goes on where it was, after it was aborted in the middle", async () => {
    const { door, box, requests } = await serveFiles();
    const { id, url } = await openUrl(door);
    await new Promise<void>((resolve, reject) => {
      const first = new Upload(bytes as never, {
        uploadUrl: url,
        chunkSize: 500_000,
        retryDelays: null,
        onError: reject,
        onChunkComplete: (_size, sent) => {
          if (sent >= 1_000_000) void first.abort().then(resolve, reject);
        },
      });
      first.start();
    });
    const before = requests.length;
    await upload(bytes, { uploadUrl: url, chunkSize: 500_000 });
    const later = requests.slice(before).filter((line) => line.startsWith("PATCH"));
    expect(later.length).toBeLessThanOrEqual(4);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("creates its upload with a grant, sends its first bytes with it, and is published", async () => {
    const { files, box } = await serveFiles();
    const endpoint = await files.createUploadUrl({ root: "box" });
    await upload(bytes, {
      endpoint,
      uploadDataDuringCreation: true,
      chunkSize: 1_000_000,
      metadata: { filename: "report.csv", sha256: sha256(bytes) },
    });
    expectSame(await readFile(join(box, "report.csv")), bytes);
  });

  test("uploads with POST in place of PATCH where something in between knows no PATCH", async () => {
    const { door, requests } = await serveFiles();
    const { id, url } = await openUrl(door);
    await upload(bytes, { uploadUrl: url, overridePatchMethod: true, chunkSize: 1_000_000 });
    expect(requests.some((line) => line.startsWith("PATCH"))).toBe(false);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
  });

  test("terminates", async () => {
    const { door } = await serveFiles();
    const { id, url } = await openUrl(door);
    await Upload.terminate(url);
    expect(await statusOf(door, id)).toMatchObject({ status: "aborted" });
  });

  test("without a sha256 and without a size it uploads all the same", async () => {
    const { files, door, box } = await serveFiles();
    const endpoint = await files.createUploadUrl({ root: "box" });
    const done = await upload(bytes, {
      endpoint,
      uploadLengthDeferred: true,
      chunkSize: 1_000_000,
      metadata: { filename: "a" },
    });
    const transferId = new URL(done.url ?? "").pathname.split("/").at(-1);
    await answerOf(door.call("file_transfer_commit", { transferId, sha256: sha256(bytes) }));
    expectSame(await readFile(join(box, "a")), bytes);
  });
});

describe("curl", () => {
  const tusHeaders = ["-H", "Tus-Resumable: 1.0.0", "-H", "Content-Type: application/offset+octet-stream"];

  test("uploads with PATCH, resumes, and downloads with -C", async () => {
    const { door, box, dir } = await serveFiles();
    const { id, url } = await openUrl(door);
    const [first, second, target] = [join(dir, "first"), join(dir, "second"), join(dir, "target")];
    await writeFile(first, bytes.subarray(0, 2_000_000));
    await writeFile(second, bytes.subarray(2_000_000));
    const patch = async (file: string, offset: number): Promise<string> => {
      const args = [
        "-sS",
        "-X",
        "PATCH",
        "-w",
        "%{http_code}",
        ...tusHeaders,
        "-H",
        `Upload-Offset: ${offset}`,
      ];
      return (await run("curl", [...args, "--data-binary", `@${file}`, url])).stdout;
    };
    expect(await patch(first, 0)).toBe("204");
    const head = await run("curl", ["-sS", "-I", "-H", "Tus-Resumable: 1.0.0", url]);
    expect(head.stdout).toMatch(/upload-offset: 2000000/i);
    expect(await patch(second, 2_000_000)).toBe("204");
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
    const opened = await answerOf(
      door.call("file_transfer_open", { direction: "download", path: "file.bin" }),
    );
    await writeFile(target, bytes.subarray(0, 1_234_567));
    await run("curl", ["-sS", "--fail", "-C", "-", "-o", target, String(opened["downloadUrl"])]);
    expectSame(await readFile(target), bytes);
  });

  test("reads the envelope of a refusal of a large body", async () => {
    const { door, dir } = await serveFiles();
    const { url } = await openUrl(door);
    await writeFile(join(dir, "large"), Buffer.alloc(20_000_000));
    const args = [
      "-sS",
      "-X",
      "PATCH",
      ...tusHeaders,
      "-H",
      "Upload-Offset: 7",
      "--data-binary",
      `@${join(dir, "large")}`,
    ];
    const { stdout } = await run("curl", [...args, url]);
    expect(JSON.parse(stdout)).toMatchObject({
      code: expect.any(String) as string,
      retryable: expect.any(Boolean) as boolean,
    });
  });
});
