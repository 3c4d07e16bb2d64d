import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, openDoor, refusalOf, roads } from "./support/doors.ts";
import { namesIn, startFiles } from "./support/started-files.ts";

describe.each(roads)("%s", (road) => {
  test("six tools are listed, each with the schemas of what it takes and gives", async () => {
    const { files } = await startFiles();
    const tools = await (await openDoor(files, road)).listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "file_transfer_open",
      "file_transfer_write",
      "file_transfer_read",
      "file_transfer_commit",
      "file_transfer_status",
      "file_transfer_abort",
    ]);
    for (const tool of tools) {
      expect(tool["inputSchema"]).toMatchObject({ type: "object" });
      expect(tool["outputSchema"]).toMatchObject({ type: "object" });
    }
  });

  test("a file goes up in chunks and comes down the same", async () => {
    const { files, box, staging } = await startFiles();
    const door = await openDoor(files, road);
    const bytes = someBytes(1_000);
    const opened = await answerOf(
      door.call("file_transfer_open", {
        direction: "upload",
        path: "a/b.bin",
        size: bytes.length,
        sha256: sha256(bytes),
      }),
    );
    const { transferId } = opened as { transferId: string };
    expect(opened).toMatchObject({ status: "open", offset: 0, size: 1_000, root: "box", path: "a/b.bin" });
    for (let offset = 0; offset < bytes.length; offset += 300) {
      const data = bytes.subarray(offset, offset + 300).toString("base64");
      const written = await answerOf(door.call("file_transfer_write", { transferId, offset, data }));
      expect(written["nextOffset"]).toBe(Math.min(offset + 300, bytes.length));
    }
    expect(await namesIn(box)).toEqual([]);
    const committed = await answerOf(door.call("file_transfer_commit", { transferId }));
    expect(committed).toMatchObject({
      status: "committed",
      path: "a/b.bin",
      size: 1_000,
      sha256: sha256(bytes),
    });
    expect(await readFile(join(box, "a/b.bin"))).toEqual(bytes);
    expect(await namesIn(staging)).toEqual([]);

    const down = await answerOf(door.call("file_transfer_open", { direction: "download", path: "a/b.bin" }));
    expect(down).toMatchObject({ status: "open", size: 1_000, sha256: sha256(bytes) });
    const pieces: Buffer[] = [];
    for (let offset = 0, eof = false; !eof;) {
      const piece = await answerOf(
        door.call("file_transfer_read", { transferId: down["transferId"], offset, length: 333 }),
      );
      const data = Buffer.from(String(piece["data"]), "base64");
      expect(piece).toMatchObject({ offset, length: data.length, total: 1_000, chunkSha256: sha256(data) });
      pieces.push(data);
      offset = Number(piece["nextOffset"]);
      eof = piece["eof"] === true;
    }
    expect(Buffer.concat(pieces)).toEqual(bytes);
  });

  test("a refusal is an envelope, as text and as structure", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files, road);
    const answer = await door.call("file_transfer_status", { transferId: "nobody" });
    expect(JSON.parse(answer.text)).toEqual(await refusalOf(Promise.resolve(answer)));
    expect(answer.structured["error"]).toMatchObject({ code: "unknown_transfer", retryable: false });
  });
});

test("a path outside is refused, and nothing is there", async () => {
  const { files, dir } = await startFiles();
  await writeFile(join(dir, "outside"), "secret");
  const door = await openDoor(files);
  const refusal = await refusalOf(
    door.call("file_transfer_open", { direction: "download", path: "../outside" }),
  );
  expect(refusal.code).toBe("path_not_allowed");
});
