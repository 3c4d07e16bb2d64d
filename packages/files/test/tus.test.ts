import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { expectSame } from "./support/same-bytes.ts";
import { answerOf, refusalOf } from "./support/doors.ts";
import { bodyOf, patch, serveFiles, tus } from "./support/http.ts";
import { namesIn } from "./support/started-files.ts";
import { openUpload, statusOf, write } from "./support/uploads.ts";
import type { Door } from "./support/doors.ts";

const bytes = someBytes(100_000);

async function openUrl(door: Door, wish: object = {}): Promise<{ id: string; url: string }> {
  const id = await openUpload(door, { size: bytes.length, sha256: sha256(bytes), ...wish });
  return { id, url: String((await statusOf(door, id))["uploadUrl"]) };
}

describe("core", () => {
  test("HEAD, PATCH, HEAD, PATCH; then the commit by tool", async () => {
    const { door, box } = await serveFiles();
    const { id, url } = await openUrl(door);
    const head = await fetch(url, { method: "HEAD", headers: tus });
    expect([head.status, head.headers.get("upload-offset"), head.headers.get("upload-length")]).toEqual([
      200,
      "0",
      "100000",
    ]);
    expect(head.headers.get("cache-control")).toContain("no-store");
    const first = await patch(url, 0, bytes.subarray(0, 60_000));
    expect([first.status, first.headers.get("upload-offset")]).toEqual([204, "60000"]);
    expect((await fetch(url, { method: "HEAD", headers: tus })).headers.get("upload-offset")).toBe("60000");
    expect((await patch(url, 60_000, bytes.subarray(60_000))).status).toBe(204);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("both ways drive the same transfer: either resumes the other", async () => {
    const { door, box } = await serveFiles();
    const { id, url } = await openUrl(door);
    await answerOf(write(door, id, 0, bytes.subarray(0, 30_000)));
    await patch(url, 30_000, bytes.subarray(30_000, 60_000));
    await answerOf(write(door, id, 60_000, bytes.subarray(60_000, 90_000)));
    await patch(url, 90_000, bytes.subarray(90_000));
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("OPTIONS says what the server can", async () => {
    const { baseUrl } = await serveFiles();
    const response = await fetch(baseUrl, { method: "OPTIONS" });
    expect(response.status).toBe(204);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "tus-resumable": "1.0.0",
      "tus-version": "1.0.0",
      "tus-extension": "creation,creation-with-upload,creation-defer-length,expiration,termination,checksum",
      "tus-max-size": String(5 * 1024 ** 3),
      "tus-checksum-algorithm": expect.stringContaining("sha1") as string,
    });
  });

  test("P55: an offset that is not the staged one is 409 with the true one, and nothing is stored", async () => {
    const { door } = await serveFiles();
    const { url, id } = await openUrl(door);
    await patch(url, 0, bytes.subarray(0, 10));
    for (const offset of [0, 5, 11, 1_000]) {
      const response = await patch(url, offset, bytes.subarray(0, 10));
      expect(response.status).toBe(409);
      expect(await response.json()).toMatchObject({ code: "offset_mismatch", partial: { cursor: 10 } });
    }
    expect(await statusOf(door, id)).toMatchObject({ offset: 10 });
  });

  test("P55: past the declared size: nothing when the length is announced, no more than the size when it is not", async () => {
    const { door } = await serveFiles();
    const { url, id } = await openUrl(door, { size: 50_000, sha256: undefined });
    const announced = await patch(url, 0, bytes);
    expect(announced.status).toBe(413);
    expect(await announced.json()).toMatchObject({
      code: "size_mismatch",
      partial: { cursor: 0, size: 50_000 },
    });
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
    const pieces = [bytes.subarray(0, 40_000), bytes.subarray(40_000, 80_000)];
    const streamed = await patch(
      url,
      0,
      new ReadableStream({
        pull: (controller) => {
          const piece = pieces.shift();
          if (piece === undefined) controller.close();
          else controller.enqueue(piece);
        },
      }),
    );
    expect(streamed.status).toBe(413);
    expect(Number((await statusOf(door, id))["offset"])).toBeLessThanOrEqual(50_000);
  });

  test("a version that the server does not speak is 412 with the one it does", async () => {
    const { door } = await serveFiles();
    const { url } = await openUrl(door);
    for (const headers of [[], [["tus-resumable", "0.2.2"]]] as [string, string][][]) {
      const response = await fetch(url, { method: "DELETE", headers });
      expect([response.status, response.headers.get("tus-version")]).toEqual([412, "1.0.0"]);
      expect(await response.json()).toMatchObject({ code: "invalid_request" });
    }
  });

  test.each([
    ["no offset", { "upload-offset": "" }],
    ["a negative offset", { "upload-offset": "-1" }],
    ["an offset that is no number", { "upload-offset": "10 bytes" }],
    ["another content type", { "content-type": "application/json" }],
  ])("%s is refused with an envelope", async (_name, headers) => {
    const { door } = await serveFiles();
    const { url } = await openUrl(door);
    const response = await patch(url, 0, bytes.subarray(0, 10), headers);
    expect(response.status).toBeGreaterThanOrEqual(400);
    expect(response.status).toBeLessThan(500);
    expect(await response.json()).toMatchObject({
      code: expect.any(String) as string,
      message: expect.any(String) as string,
    });
  });

  test("X-HTTP-Method-Override stands for the method", async () => {
    const { door } = await serveFiles();
    const { url, id } = await openUrl(door);
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...tus,
        "x-http-method-override": "PATCH",
        "upload-offset": "0",
        "content-type": "application/offset+octet-stream",
      },
      body: bodyOf(bytes.subarray(0, 10)),
    });
    expect(response.status).toBe(204);
    expect(await statusOf(door, id)).toMatchObject({ offset: 10 });
  });
});

describe("termination and expiration", () => {
  test("DELETE deletes the bytes and revokes the URL", async () => {
    const { door, staging } = await serveFiles();
    const { url, id } = await openUrl(door);
    await patch(url, 0, bytes.subarray(0, 10));
    expect((await fetch(url, { method: "DELETE", headers: tus })).status).toBe(204);
    expect(await namesIn(staging)).toEqual([]);
    expect((await fetch(url, { method: "HEAD", headers: tus })).status).toBe(404);
    expect(await statusOf(door, id)).toMatchObject({ status: "aborted" });
  });

  test("Upload-Expires is when the transfer expires, and moves with it", async () => {
    let nowMs = Date.UTC(2026, 6, 28);
    const { door } = await serveFiles({ now: () => nowMs, idleMs: 3_600_000 });
    const { url } = await openUrl(door);
    const first = (await patch(url, 0, bytes.subarray(0, 10))).headers.get("upload-expires");
    expect(Date.parse(first ?? "")).toBe(nowMs + 3_600_000);
    nowMs += 60_000;
    const second = (await patch(url, 10, bytes.subarray(10, 20))).headers.get("upload-expires");
    expect(Date.parse(second ?? "")).toBe(nowMs + 3_600_000);
    const head = await fetch(url, { method: "HEAD", headers: tus });
    expect(head.headers.get("upload-expires")).toBe(second);
    nowMs += 3_600_001;
    expect((await fetch(url, { method: "HEAD", headers: tus })).status).toBe(404);
  });
});

describe("checksum", () => {
  const chunk = bytes.subarray(0, 10_000);

  test.each(["sha1", "sha256", "sha512", "md5"])(
    "%s: right is stored, wrong is 460 and nothing of it stays",
    async (algorithm) => {
      const { door } = await serveFiles();
      const { url, id } = await openUrl(door);
      const digest = createHash(algorithm).update(chunk).digest("base64");
      const wrong = await patch(url, 0, bytes.subarray(1, 10_001), {
        "upload-checksum": `${algorithm} ${digest}`,
      });
      expect(wrong.status).toBe(460);
      expect(await wrong.json()).toMatchObject({ code: "checksum_mismatch", partial: { cursor: 0 } });
      expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
      expect((await patch(url, 0, chunk, { "upload-checksum": `${algorithm} ${digest}` })).status).toBe(204);
      expect(await statusOf(door, id)).toMatchObject({ offset: 10_000 });
    },
  );

  test.each(["crc32 AAAA", "sha1", "sha1 %%%", ""])("the header %j is 400", async (header) => {
    const { door } = await serveFiles();
    const { url, id } = await openUrl(door);
    const response = await patch(url, 0, chunk, { "upload-checksum": header });
    expect(response.status).toBe(400);
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
  });

  test("a body with a checksum whose connection breaks leaves nothing unverified behind", async () => {
    const { door } = await serveFiles();
    const { url, id } = await openUrl(door);
    const digest = createHash("sha1").update(bytes).digest("base64");
    const controller = new AbortController();
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => stream.enqueue(bytes.subarray(0, 50_000)),
    });
    const sending = patch(url, 0, body, { "upload-checksum": `sha1 ${digest}` }, controller.signal);
    await expect.poll(async () => (await statusOf(door, id))["offset"], { timeout: 10_000 }).toBe(50_000);
    controller.abort();
    await expect(sending).rejects.toThrow();
    await expect.poll(async () => (await statusOf(door, id))["offset"], { timeout: 10_000 }).toBe(0);
  });
});

describe("creation", () => {
  const metadata = (entries: Record<string, string>): string =>
    Object.entries(entries)
      .map(([key, value]) => `${key} ${Buffer.from(value).toString("base64")}`)
      .join(",");

  test("POST with a grant, with the first bytes, then PATCH; published with the last byte when the sha256 is known", async () => {
    const { files, box, baseUrl } = await serveFiles();
    const grant = await files.createUploadUrl({ root: "box", directory: "in" });
    const sent = { filename: "Ä report.csv", sha256: sha256(bytes) };
    const created = await fetch(grant, {
      method: "POST",
      headers: {
        ...tus,
        "upload-length": String(bytes.length),
        "upload-metadata": metadata(sent),
        "content-type": "application/offset+octet-stream",
      },
      body: bodyOf(bytes.subarray(0, 40_000)),
    });
    expect([created.status, created.headers.get("upload-offset")]).toEqual([201, "40000"]);
    const url = created.headers.get("location") ?? "";
    expect(url.startsWith(`${baseUrl}/`)).toBe(true);
    const head = await fetch(url, { method: "HEAD", headers: tus });
    expect(head.headers.get("upload-metadata")).toBe(metadata(sent));
    expect((await patch(url, 40_000, bytes.subarray(40_000))).status).toBe(204);
    expectSame(await readFile(join(box, "in/Ä report.csv")), bytes);
    // The answer to the last PATCH may have been lost: whoever asks is told that all is there.
    const after = await fetch(url, { method: "HEAD", headers: tus });
    expect([after.status, after.headers.get("upload-offset")]).toEqual([200, "100000"]);
    expect((await patch(url, 100_000, new Uint8Array())).status).toBe(404);
  });

  test("with a sha256 that does not match nothing is published: 460, and the transfer is open", async () => {
    const { files, box } = await serveFiles();
    const grant = await files.createUploadUrl({ root: "box" });
    const created = await fetch(grant, {
      method: "POST",
      headers: {
        ...tus,
        "upload-length": "10",
        "upload-metadata": metadata({ sha256: sha256("other") }),
        "content-type": "application/offset+octet-stream",
      },
      body: bodyOf(bytes.subarray(0, 10)),
    });
    expect(created.status).toBe(460);
    expect(await created.json()).toMatchObject({ code: "checksum_mismatch" });
    expect(await namesIn(box)).toEqual([]);
  });

  test("without a sha256 the bytes wait for a commit by tool", async () => {
    const { files, box, door } = await serveFiles();
    const grant = await files.createUploadUrl({ root: "box" });
    const created = await fetch(grant, {
      method: "POST",
      headers: { ...tus, "upload-length": "10", "content-type": "application/offset+octet-stream" },
      body: bodyOf(bytes.subarray(0, 10)),
    });
    expect(created.status).toBe(201);
    expect(await namesIn(box)).toEqual([]);
    const transferId = new URL(created.headers.get("location") ?? "").pathname.split("/").at(-1);
    const digest = sha256(bytes.subarray(0, 10));
    await answerOf(door.call("file_transfer_commit", { transferId, sha256: digest }));
    expect(await namesIn(box)).toEqual(["file"]);
  });

  test("P59: an unknown size: deferred, declared with a later PATCH; and zero bytes", async () => {
    const { files, box } = await serveFiles();
    const grant = await files.createUploadUrl({ root: "box" });
    const deferred = await fetch(grant, {
      method: "POST",
      headers: { ...tus, "upload-defer-length": "1", "upload-metadata": metadata({ sha256: sha256(bytes) }) },
    });
    expect(deferred.status).toBe(201);
    const url = deferred.headers.get("location") ?? "";
    const head = await fetch(url, { method: "HEAD", headers: tus });
    expect(head.headers.get("upload-defer-length")).toBe("1");
    await patch(url, 0, bytes.subarray(0, 50_000));
    const last = await patch(url, 50_000, bytes.subarray(50_000), { "upload-length": "100000" });
    expect(last.status).toBe(204);
    expectSame(await readFile(join(box, "file")), bytes);
    const empty = await fetch(grant, {
      method: "POST",
      headers: { ...tus, "upload-length": "0", "upload-metadata": metadata({ sha256: sha256("") }) },
    });
    expect(empty.status).toBe(201);
    expect((await namesIn(box)).length).toBe(2);
  });

  test("the grant bounds the size, and the name is a label", async () => {
    const { files, box } = await serveFiles();
    const grant = await files.createUploadUrl({ root: "box", directory: "in", maxFileBytes: 10 });
    const post = (headers: Record<string, string>, body?: Uint8Array): Promise<Response> =>
      fetch(grant, {
        method: "POST",
        headers: { ...tus, ...headers },
        ...(body === undefined ? {} : { body: bodyOf(body) }),
      });
    const large = await post({ "upload-length": "11" });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ code: "file_too_large", partial: { maxBytes: 10 } });
    const deferred = await post({ "upload-defer-length": "1" });
    const more = await patch(deferred.headers.get("location") ?? "", 0, bytes.subarray(0, 11));
    expect(more.status).toBe(413);
    const hostile = await post(
      {
        "upload-length": "3",
        "upload-metadata": metadata({ filename: "../../etc/passwd", sha256: sha256("abc") }),
        "content-type": "application/offset+octet-stream",
      },
      Buffer.from("abc"),
    );
    expect(hostile.status).toBe(201);
    expect(await namesIn(box)).toEqual(["in", "in/passwd"]);
  });

  test("nothing internal is in what a client is told", async () => {
    const { files } = await serveFiles({ scope: () => "secret-scope" });
    const grant = await files.createUploadUrl({ root: "box", scope: "secret-scope" });
    const created = await fetch(grant, { method: "POST", headers: { ...tus, "upload-length": "3" } });
    const head = await fetch(created.headers.get("location") ?? "", { method: "HEAD", headers: tus });
    for (const response of [created, head])
      expect(JSON.stringify([...response.headers])).not.toMatch(/secret-scope|staging|tmp/);
  });
});

test("P67: a stream of unknown size counts for what it has stored, not for the room that was held ready", async () => {
  const { door } = await serveFiles({ limits: { maxScopeBytes: 9_000_000 } });
  const id = await openUpload(door, { path: "unknown" });
  await patch(String((await statusOf(door, id))["uploadUrl"]), 0, bytes.subarray(0, 10));
  await openUpload(door, { path: "large", size: 8_999_990 });
  const more = { direction: "upload", path: "more", size: 1 };
  expect((await refusalOf(door.call("file_transfer_open", more))).partial).toEqual({
    used: 9_000_000,
    limit: 9_000_000,
  });
});

test("an upload that ended by the tool answers its URL no more", async () => {
  const { door } = await serveFiles();
  const { id, url } = await openUrl(door);
  await patch(url, 0, bytes);
  await answerOf(door.call("file_transfer_commit", { transferId: id }));
  for (const method of ["HEAD", "DELETE"])
    expect((await fetch(url, { method, headers: tus })).status).toBe(404);
  expect((await patch(url, 100_000, new Uint8Array())).status).toBe(404);
  expect((await refusalOf(write(door, id, 0, bytes.subarray(0, 3)))).code).toBe("not_active");
});
