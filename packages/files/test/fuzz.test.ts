import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { longJobsErrorCodes } from "@longjobs/core";
import { expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { openDoor, type Door } from "./support/doors.ts";
import { serveFiles } from "./support/http.ts";
import { SeededRandom } from "./support/seeded-random.ts";
import { namesIn, startFiles } from "./support/started-files.ts";
import { openDownload, openUpload, statusOf } from "./support/uploads.ts";

// More in a long run: LONGJOBS_FUZZ=5000.
const runs = Number(process.env["LONGJOBS_FUZZ"] ?? 500);
const timeoutMs = 600_000;

const codes: ReadonlySet<string> = new Set(longJobsErrorCodes);

const paths = [
  "file.bin",
  "a/b/c",
  "../outside",
  "../../etc/passwd",
  "/etc/passwd",
  "a/../../outside",
  "a//b",
  "./a",
  "a/.",
  "link",
  "link/inner",
  "dirlink/secret",
  "dirlink/new",
  "denied.key",
  "sub/denied.key",
  "a\\b",
  "..\\outside",
  "a\0b",
  "\u202egnp.exe",
  "C:\\windows",
  "con",
  "a:b",
  "~",
  "x".repeat(300),
  `${"d/".repeat(400)}e`,
  "",
  " ",
  ".",
  "..",
  "%2e%2e/outside",
  "ﬁle",
  "é",
  "é",
  "__proto__",
];
const numbers = [0, 1, -1, 0.5, 10, 99, 100, 101, 65_536, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308];
const texts = [
  "",
  "AAAA",
  "AA==",
  "A",
  "====",
  "AAA",
  "-_-_",
  "AA AA",
  "AAAA\n",
  "%",
  "☃",
  "A".repeat(100_000),
];
const digests = [undefined, sha256(""), "abc", "z".repeat(64), "", "A".repeat(64)];

/** A directory with everything in it that could lead somewhere else. */
async function plant(dir: string, box: string): Promise<() => Promise<string[]>> {
  await mkdir(join(dir, "elsewhere"));
  await writeFile(join(dir, "elsewhere/secret"), "secret");
  await writeFile(join(dir, "outside"), "secret");
  await symlink(join(dir, "outside"), join(box, "link"));
  await symlink(join(dir, "elsewhere"), join(box, "dirlink"));
  await writeFile(join(box, "denied.key"), "secret");
  await writeFile(join(box, "down.bin"), someBytes(100));
  return async () => (await namesIn(dir)).filter((name) => !/^(?:box|staging)(?:\/|$)/.test(name));
}

function assertCoded(envelope: unknown, told: string): void {
  const { code, message, retryable } = envelope as Record<string, unknown>;
  expect(codes.has(String(code)), told).toBe(true);
  expect([typeof message, typeof retryable], told).toEqual(["string", "boolean"]);
  expect(code, told).not.toBe("internal_error");
  // Nothing of the server: no directory, no module, no stack.
  expect(JSON.stringify(envelope), told).not.toMatch(/longjobs-files-|\/tmp\/|node:|\bat .*\.ts:\d/);
}

test(
  `a fuzz of ${runs} tool calls: each is answered, or refused with a code; nothing outside is touched`,
  async () => {
    const random = new SeededRandom();
    console.log(`LONGJOBS_SEED=${random.seed}`);
    const { dir, box, second } = await startFiles({ sweepIntervalMs: null });
    const outside = await plant(dir, box);
    const { files } = second({
      limits: { maxFileBytes: 200_000, maxOpenTransfers: 20, maxScopeBytes: 2_000_000 },
      roots: { box: { path: box, write: true, deny: ["*.key"] } },
    });
    const before = await outside();
    const doors = [await openDoor(files, "v2 http"), await openDoor(files, "v1 memory")];
    const ids = ["nobody", "../x", "files~signing-secret", "__proto__", "", "x".repeat(200)];
    for (let run = 0; run < runs; run += 1) {
      const door = random.pick(doors);
      const [name, args] = randomCall(random, ids);
      const answer = await door.call(name, args);
      const told = `${name} ${JSON.stringify(args).slice(0, 300)} -> ${answer.text.slice(0, 500)}`;
      if (!answer.isError) {
        const { transferId } = answer.structured;
        if (typeof transferId === "string") ids.push(transferId);
        if (ids.length > 60) ids.splice(6, 10);
      } else if (answer.structured["error"] !== undefined) assertCoded(answer.structured["error"], told);
      // What is not even the right type is refused by the SDK itself, in its own words.
      else expect(answer.text, told).toMatch(/-32602|nput validation|nvalid/);
    }
    expect(await outside()).toEqual(before);
    await files.sweep();
  },
  timeoutMs,
);

function randomCall(random: SeededRandom, ids: readonly string[]): [string, object] {
  const transferId = random.pick(ids);
  const offset = random.pick(numbers);
  const wrong = random.next() < 0.05 ? { transferId: random.pick([null, 7, {}, []]) } : {};
  switch (random.below(7)) {
    case 0:
    case 1:
      return [
        "file_transfer_open",
        {
          direction: random.pick(["upload", "upload", "download", "sideways"]),
          path: random.pick(paths),
          ...random.pick<object>([{}, {}, { root: "box" }, { root: "other" }, { root: "../box" }]),
          ...random.pick<object>([{}, { size: random.pick(numbers) }]),
          ...random.pick<object>([{}, { sha256: random.pick(digests) }]),
          ...random.pick<object>([{}, { ifExists: random.pick(["fail", "replace", "version", "append"]) }]),
        },
      ];
    case 2:
    case 3:
      return [
        "file_transfer_write",
        { transferId, offset, data: random.pick(texts), sha256: random.pick(digests), ...wrong },
      ];
    case 4:
      return [
        "file_transfer_read",
        { transferId, offset, length: random.pick([undefined, ...numbers]), ...wrong },
      ];
    case 5:
      return ["file_transfer_commit", { transferId, sha256: random.pick(digests), ...wrong }];
    default:
      return [random.pick(["file_transfer_status", "file_transfer_abort"]), { transferId, ...wrong }];
  }
}

test(
  `a fuzz of ${runs} HTTP requests: each is answered, or refused with an envelope; nothing outside is touched`,
  async () => {
    const random = new SeededRandom();
    console.log(`LONGJOBS_SEED=${random.seed}`);
    const served = await serveFiles({
      limits: { maxFileBytes: 200_000, maxOpenTransfers: null, maxScopeFiles: null },
    });
    const { baseUrl, box, dir, door, files } = served;
    const outside = await plant(dir, box);
    const before = await outside();
    const urls = await someUrls(door, baseUrl);
    urls.push(await files.createUploadUrl({ root: "box", directory: "in" }));
    for (let run = 0; run < runs; run += 1) {
      const url = mutateUrl(random, random.pick(urls));
      const method = random.pick(["GET", "HEAD", "PATCH", "POST", "DELETE", "OPTIONS", "PUT", "PROPFIND"]);
      const headers = randomHeaders(random);
      const body =
        method === "GET" || method === "HEAD"
          ? {}
          : { body: Buffer.alloc(random.pick([0, 1, 10, 100, 70_000]), 1) };
      const response = await files.fetch(new Request(url, { method, headers, ...body }));
      const text = await response.text();
      const told = `${method} ${url} ${JSON.stringify(headers)} -> ${response.status} ${text.slice(0, 300)}`;
      expect(response.status, told).not.toBe(500);
      if (response.status >= 400) {
        expect(response.headers.get("content-type"), told).toBe("application/json");
        if (method !== "HEAD") assertCoded(JSON.parse(text), told);
      }
      const location = response.headers.get("location");
      if (location !== null) urls.push(location);
      // What was deleted or committed is replaced, so that there is always something to hit.
      if (run % 50 === 49) urls.push(...(await someUrls(door, baseUrl)));
      if (urls.length > 60) urls.splice(0, 10);
    }
    expect(await outside()).toEqual(before);
    expect(await namesIn(join(box, "dirlink"))).toEqual(["secret"]);
    await files.sweep();
  },
  timeoutMs,
);

async function someUrls(door: Door, baseUrl: string): Promise<string[]> {
  const known = await openUpload(door, { path: `f${Math.random()}`, size: 100 });
  const unknown = await openUpload(door, { path: `f${Math.random()}` });
  const down = await openDownload(door, "down.bin");
  const of = async (id: string): Promise<string> => {
    const { uploadUrl, downloadUrl } = await statusOf(door, id);
    return String(uploadUrl ?? downloadUrl);
  };
  return [await of(known), await of(unknown), await of(down), `${baseUrl}/${known}`, baseUrl];
}

function mutateUrl(random: SeededRandom, url: string): string {
  switch (random.below(10)) {
    case 0:
      return url.replace(/sig=.../, "sig=abc");
    case 1:
      return url.replace("/files/", `/files/${random.pick(["..%2f", "%2e%2e/", "//", "%00", "x/"])}`);
    case 2:
      return `${url}&x=%zz`;
    case 3:
      return url.slice(0, -1 - random.below(20));
    default:
      return url;
  }
}

function randomHeaders(random: SeededRandom): Record<string, string> {
  const some = (chance: number, name: string, values: readonly string[]): Record<string, string> =>
    random.next() < chance ? { [name]: random.pick(values) } : {};
  const counts = ["0", "1", "10", "100", "-1", "1.5", "1e3", "", "abc", "99999999999999999999", "0x10", " 5"];
  const metadata = [
    "",
    "filename",
    "filename AAAA",
    "a b c",
    "filename Li4vLi4vZXRj",
    "x".repeat(5_000),
    "ü AAAA",
    "a AA=A",
  ];
  return {
    ...some(0.9, "tus-resumable", ["1.0.0", "1.0.0", "1.0.0", "1.0.0", "0.2.2", ""]),
    ...some(0.8, "content-type", [
      "application/offset+octet-stream",
      "application/offset+octet-stream",
      "text/plain",
    ]),
    ...some(0.8, "upload-offset", counts),
    ...some(0.3, "upload-length", counts),
    ...some(0.1, "upload-defer-length", ["1", "0", "2", ""]),
    ...some(
      0.2,
      "upload-metadata",
      metadata.filter((value) => /^[\x20-\x7e]*$/.test(value)),
    ),
    ...some(0.2, "upload-checksum", [
      "sha1 AAAA",
      "sha256",
      "crc32 AAAA",
      "sha1 %%%",
      "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=",
    ]),
    ...some(0.1, "upload-concat", ["partial", "final;/a /b", "x"]),
    ...some(0.2, "range", [
      "bytes=0-9",
      "bytes=-1",
      "bytes=99-",
      "bytes=100-",
      "bytes=5-1",
      "bytes=a-b",
      "bytes=0-1,3-4",
      "x",
    ]),
    ...some(0.1, "if-match", ["*", '"x"', "x"]),
    ...some(0.1, "if-none-match", ["*", '"x"']),
    ...some(0.1, "if-range", ['"x"', "Tue, 28 Jul 2026 00:00:00 GMT"]),
    ...some(0.1, "x-http-method-override", ["PATCH", "DELETE", "GET", "patch", "..", "HEAD"]),
    ...some(0.05, "x-forwarded-host", ["evil.example"]),
  };
}
