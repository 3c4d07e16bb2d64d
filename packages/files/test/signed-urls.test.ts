import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { MemoryTaskStore } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { someBytes } from "./disk/support/bytes.ts";
import { answerOf } from "./support/doors.ts";
import { patch, serveFiles, tus, type ServedFiles } from "./support/http.ts";
import { openUpload, statusOf, write } from "./support/uploads.ts";

const unknown = "00000000-0000-4000-8000-000000000000";

async function urls(
  served: ServedFiles,
): Promise<{ up: string; down: string; upId: string; downId: string }> {
  const upId = await openUpload(served.door, { size: 100 });
  await writeFile(join(served.box, "down.bin"), someBytes(10));
  const opened = await answerOf(
    served.door.call("file_transfer_open", { direction: "download", path: "down.bin" }),
  );
  return {
    upId,
    downId: String(opened["transferId"]),
    up: String((await statusOf(served.door, upId))["uploadUrl"]),
    down: String(opened["downloadUrl"]),
  };
}

/** Everything of a response, its date aside. */
async function whole(url: string, method: string, body?: string): Promise<string> {
  const headers = {
    ...tus,
    "upload-offset": "0",
    "upload-length": "10",
    "content-type": "application/offset+octet-stream",
  };
  const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
  const told = [...response.headers].filter(([name]) => !["date", "connection", "keep-alive"].includes(name));
  return JSON.stringify([response.status, told, await response.text()]);
}

describe("P31: wrong signatures, foreign and unknown transfers are one 404, to the letter", () => {
  test.each(["HEAD", "GET", "PATCH", "DELETE", "POST", "PUT"])("%s", async (method) => {
    const served = await serveFiles();
    const { up, down, upId, downId } = await urls(served);
    const [upUrl, downUrl] = [new URL(up), new URL(down)];
    const swap = (url: URL, id: string): string => `${served.baseUrl}/${id}${url.search}`;
    const flipped = (url: URL): string => {
      const sig = url.searchParams.get("sig") ?? "";
      const at = sig.length - 3;
      return `${url.origin}${url.pathname}?sig=${sig.slice(0, at)}${sig[at] === "A" ? "B" : "A"}${sig.slice(at + 1)}`;
    };
    const expired = (url: URL): string =>
      `${url.origin}${url.pathname}?sig=${(url.searchParams.get("sig") ?? "").replace(/^[^.]+/, "zzzzzzzz")}`;
    const body = method === "PATCH" || method === "POST" ? "0123456789" : undefined;
    const missing = await whole(`${served.baseUrl}/${unknown}?sig=0.a.b`, method, body);
    expect(JSON.parse(missing)[0]).toBe(404);
    const bad = [
      `${served.baseUrl}/${upId}`,
      `${served.baseUrl}/${upId}?sig=`,
      `${served.baseUrl}/${upId}?sig=0`,
      `${served.baseUrl}/${upId}?sig=${"x".repeat(2_000)}`,
      flipped(upUrl),
      flipped(downUrl),
      swap(upUrl, downId),
      swap(downUrl, upId),
      swap(upUrl, unknown),
      swap(upUrl, "..%2f..%2fetc"),
      swap(upUrl, `${upId}/`),
      swap(upUrl, "files~signing-secret"),
      expired(downUrl),
      `${served.baseUrl}?grant=abc.def.ghi`,
      `${served.baseUrl}/`,
      new URL("/elsewhere", served.baseUrl).href,
    ];
    for (const url of bad) expect(await whole(url, method, body), url).toBe(missing);
    expect(await statusOf(served.door, upId)).toMatchObject({ status: "open", offset: 0 });
  });

  test("a URL takes the methods that were signed, and no others: GET never reaches the upload", async () => {
    const served = await serveFiles();
    const { up, down, upId } = await urls(served);
    await answerOf(write(served.door, upId, 0, someBytes(10)));
    const missing = JSON.parse(await whole(`${served.baseUrl}/${unknown}?sig=0.a.b`, "GET")) as unknown[];
    expect(JSON.parse(await whole(up, "GET"))).toEqual(missing);
    for (const method of ["PATCH", "DELETE", "POST"])
      expect(
        (JSON.parse(await whole(down, method, method === "DELETE" ? undefined : "x")) as unknown[])[0],
      ).toBe(404);
    expect((await fetch(down)).status).toBe(200);
  });
});

test("a URL is for its transfer alone, however alike two of them are", async () => {
  const served = await serveFiles();
  const ids = [
    await openUpload(served.door, { path: "a", size: 5 }),
    await openUpload(served.door, { path: "b", size: 5 }),
  ];
  const [one, other] = await Promise.all(
    ids.map(async (id) => new URL(String((await statusOf(served.door, id))["uploadUrl"]))),
  );
  const swapped = `${served.baseUrl}/${ids[1]}${one?.search}`;
  expect((await fetch(swapped, { method: "HEAD", headers: tus })).status).toBe(404);
  expect((await fetch(other?.href ?? "", { method: "HEAD", headers: tus })).status).toBe(200);
});

test("a download URL is short-lived; the status gives a fresh one", async () => {
  let nowMs = Date.UTC(2026, 6, 28);
  const served = await serveFiles({ now: () => nowMs });
  const { down, downId, up } = await urls(served);
  nowMs += 15 * 60_000 + 1;
  expect((await fetch(down)).status).toBe(404);
  expect((await fetch(up, { method: "HEAD", headers: tus })).status).toBe(200);
  const fresh = String((await statusOf(served.door, downId))["downloadUrl"]);
  expect((await fetch(fresh)).status).toBe(200);
});

test("keys rotate: the first signs, all are accepted, one that is gone is not", async () => {
  const [old, current] = ["o".repeat(32), "c".repeat(32)];
  const served = await serveFiles();
  const http = (secrets: string[]) => ({ http: { baseUrl: served.baseUrl, secrets } });
  const before = served.second(http([old]));
  const during = served.second(http([current, old]));
  const after = served.second(http([current]));
  const { openDoor } = await import("./support/doors.ts");
  const door = await openDoor(before.files);
  const id = await openUpload(door, { size: 10 });
  const url = String((await statusOf(door, id))["uploadUrl"]);
  const newUrl = String((await statusOf(await openDoor(during.files), id))["uploadUrl"]);
  const statusAt = async (files: ServedFiles["files"], at: string): Promise<number> =>
    (await files.fetch(new Request(at, { method: "HEAD", headers: tus }))).status;
  expect(await statusAt(during.files, url)).toBe(200);
  expect(await statusAt(during.files, newUrl)).toBe(200);
  expect(await statusAt(after.files, newUrl)).toBe(200);
  expect(await statusAt(after.files, url)).toBe(404);
});

test("without secrets, URLs outlive a restart and hold on every instance", async () => {
  const store = new MemoryTaskStore();
  const served = await serveFiles({ store });
  const { up } = await urls(served);
  await served.files.close();
  const next = served.second();
  const response = await next.files.fetch(new Request(up, { method: "HEAD", headers: tus }));
  expect(response.status).toBe(200);
});

test("the base URL comes from the configuration, whatever the request says", async () => {
  const served = await serveFiles({ http: { baseUrl: "https://files.example/base/", path: "/files" } });
  const grant = await served.files.createUploadUrl({ root: "box" });
  expect(grant).toMatch(/^https:\/\/files\.example\/base\?grant=/);
  const response = await served.files.fetch(
    new Request(`http://evil.example/files${new URL(grant).search}`, {
      method: "POST",
      headers: {
        ...tus,
        "upload-length": "5",
        host: "evil.example",
        "x-forwarded-host": "evil.example",
        forwarded: "host=evil.example",
      },
    }),
  );
  expect(response.status).toBe(201);
  expect(response.headers.get("location")).toMatch(/^https:\/\/files\.example\/base\/[\w-]+\?sig=/);
});

test("a grant ends with its time, and cannot be changed", async () => {
  let nowMs = Date.UTC(2026, 6, 28);
  const { files } = await serveFiles({ now: () => nowMs });
  const grant = await files.createUploadUrl({ root: "box", validForMs: 1_000 });
  const post = async (url: string): Promise<number> =>
    (await files.fetch(new Request(url, { method: "POST", headers: { ...tus, "upload-length": "5" } })))
      .status;
  expect(await post(grant)).toBe(201);
  const [payload = "", ...signature] = (new URL(grant).searchParams.get("grant") ?? "").split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...claims, scope: "eve" })).toString("base64url");
  expect(await post(`${grant.split("?")[0]}?grant=${[forged, ...signature].join(".")}`)).toBe(404);
  nowMs += 1_001;
  expect(await post(grant)).toBe(404);
});

test("where the caller is known, a URL of somebody else is a 404", async () => {
  let sub = "ada";
  const auth = () => ({ clientId: "host", extra: { iss: "https://id.example", sub } });
  const served = await serveFiles(
    { scope: ({ authInfo }) => (authInfo?.extra?.["sub"] as string | undefined) ?? "ada", auth },
    "v2 memory",
  );
  const id = await openUpload(served.door, { size: 10 });
  const url = String((await statusOf(served.door, id))["uploadUrl"]);
  expect((await patch(url, 0, someBytes(5))).status).toBe(204);
  sub = "eve";
  expect((await patch(url, 5, someBytes(5))).status).toBe(404);
  expect((await fetch(url, { method: "HEAD", headers: tus })).status).toBe(404);
  sub = "ada";
  expect((await patch(url, 5, someBytes(5))).status).toBe(204);
});

describe("pages of other origins", () => {
  test("a preflight is answered, and every response can be read, refusals too", async () => {
    const served = await serveFiles();
    const { up, down } = await urls(served);
    const origin = "https://app.example";
    const preflight = await fetch(up, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "PATCH",
        "access-control-request-headers": "upload-offset",
      },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-origin")).toBe("*");
    expect(preflight.headers.get("access-control-allow-methods")).toContain("PATCH");
    for (const name of [
      "Upload-Checksum",
      "Upload-Offset",
      "Upload-Length",
      "Tus-Resumable",
      "Range",
      "X-HTTP-Method-Override",
    ])
      expect(preflight.headers.get("access-control-allow-headers")).toContain(name);
    for (const response of [
      await patch(up, 0, someBytes(5), { origin }),
      await patch(up, 99, someBytes(5), { origin }),
      await fetch(down, { headers: { origin } }),
      await fetch(`${up}x`, { headers: { origin } }),
    ]) {
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      for (const name of [
        "Upload-Offset",
        "Upload-Expires",
        "Location",
        "Tus-Checksum-Algorithm",
        "Content-Range",
        "ETag",
      ])
        expect(response.headers.get("access-control-expose-headers")).toContain(name);
    }
  });

  test("with a list of origins the others get no permission", async () => {
    const served = await serveFiles();
    const { files } = served.second({
      http: { baseUrl: served.baseUrl, corsOrigins: ["https://app.example"] },
    });
    const allowed = async (origin: string): Promise<string | null> =>
      (
        await files.fetch(new Request(served.baseUrl, { method: "OPTIONS", headers: { origin } }))
      ).headers.get("access-control-allow-origin");
    expect(await allowed("https://app.example")).toBe("https://app.example");
    expect(await allowed("https://evil.example")).toBeNull();
  });
});
