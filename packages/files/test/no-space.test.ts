import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { expect, test, type TestContext } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { smallDisk } from "./disk/support/small-disk.ts";
import { answerOf, refusalOf } from "./support/doors.ts";
import { patch, serveFiles, type ServedFiles } from "./support/http.ts";
import { expectSame } from "./support/same-bytes.ts";
import { openUpload, statusOf, write } from "./support/uploads.ts";

const bytes = someBytes(900 * 1024);

/** A server whose staging has 1 MiB, half of which something else takes. */
async function serveOnSmallDisk(
  context: TestContext,
): Promise<ServedFiles & { readonly free: () => Promise<void> }> {
  const disk = smallDisk(1024 * 1024);
  if (disk === undefined) return context.skip("this user may not mount a small disk");
  const filler = join(disk, "filler");
  await writeFile(filler, someBytes(512 * 1024));
  const served = await serveFiles({ staging: join(disk, "staging") });
  return { ...served, free: () => rm(filler) };
}

test("P67: a disk that fills up in mid-chunk is no_space by tool; the offset is exact, and the upload goes on", async (context) => {
  const { door, free, box } = await serveOnSmallDisk(context);
  const id = await openUpload(door);
  const refusal = await refusalOf(write(door, id, 0, bytes));
  expect(refusal).toMatchObject({ code: "no_space", retryable: true });
  const offset = Number((await statusOf(door, id))["offset"]);
  expect(refusal.partial).toEqual({ cursor: offset });
  await free();
  await answerOf(write(door, id, offset, bytes.subarray(offset)));
  await answerOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes) }));
  expectSame(await readFile(join(box, "file.bin")), bytes);
});

test("P67: the same by TUS: 507 with the envelope", async (context) => {
  const { door, free, box } = await serveOnSmallDisk(context);
  const id = await openUpload(door);
  const url = String((await statusOf(door, id))["uploadUrl"]);
  const response = await patch(url, 0, bytes);
  expect(response.status).toBe(507);
  expect(await response.json()).toMatchObject({ code: "no_space", retryable: true });
  const offset = Number((await statusOf(door, id))["offset"]);
  expect(offset).toBeGreaterThan(0);
  await free();
  expect((await patch(url, offset, bytes.subarray(offset))).status).toBe(204);
  await answerOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes) }));
  expectSame(await readFile(join(box, "file.bin")), bytes);
});

test("P67: a declared size that the disk has no room for is refused at the opening, and nothing is left", async (context) => {
  const { door, files, store } = await serveOnSmallDisk(context);
  const wish = { direction: "upload", path: "a", size: bytes.length };
  expect(await refusalOf(door.call("file_transfer_open", wish))).toMatchObject({
    code: "no_space",
    retryable: true,
  });
  await files.sweep();
  expect((store as { readonly size?: number }).size).toBe(0);
});
