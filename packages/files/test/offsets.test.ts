import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { assert, property, string, uint8Array } from "fast-check";
import { describe, expect, test } from "vitest";

import { decodeBase64 } from "../src/decode-base64.ts";
import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, openDoor, refusalOf } from "./support/doors.ts";
import { startFiles } from "./support/started-files.ts";
import { openUpload, publishBytes, statusOf, write } from "./support/uploads.ts";

const bytes = Buffer.from("0123456789abcdef");

describe("P55: offset rules", () => {
  test("the exact offset is accepted, and the next one is named", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 16 });
    expect(await answerOf(write(door, id, 0, bytes.subarray(0, 8)))).toMatchObject({
      nextOffset: 8,
      size: 16,
    });
    expect(await answerOf(write(door, id, 8, bytes.subarray(8)))).toMatchObject({ nextOffset: 16 });
  });

  test("the last chunk again, with the same bytes, is acknowledged and stored once", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 16, sha256: sha256(bytes) });
    await answerOf(write(door, id, 0, bytes.subarray(0, 8)));
    for (let repeat = 0; repeat < 3; repeat += 1)
      expect(await answerOf(write(door, id, 0, bytes.subarray(0, 8)))).toMatchObject({ nextOffset: 8 });
    await answerOf(write(door, id, 8, bytes.subarray(8)));
    expect(await answerOf(write(door, id, 8, bytes.subarray(8)))).toMatchObject({ nextOffset: 16 });
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
  });

  test.each([
    ["the last chunk with other bytes", 8, Buffer.from("89abcdeX")],
    ["a gap", 20, bytes.subarray(0, 4)],
    ["an overlap at the end", 12, bytes.subarray(8)],
    ["an overlap inside", 2, bytes.subarray(2, 6)],
    ["a chunk before the last, the same bytes", 0, bytes.subarray(0, 8)],
    ["two chunks at once, the same bytes", 0, bytes],
    ["a piece of the last chunk", 12, bytes.subarray(12)],
    ["a negative offset", -8, bytes.subarray(8)],
    ["a fractional offset", 8.5, bytes.subarray(0, 1)],
    ["a huge offset", Number.MAX_SAFE_INTEGER + 1, bytes],
  ])("%s is refused with the true offset, and nothing is stored", async (_name, offset, chunk) => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 100 });
    await answerOf(write(door, id, 0, bytes.subarray(0, 8)));
    await answerOf(write(door, id, 8, bytes.subarray(8)));
    const refusal = await refusalOf(write(door, id, offset, chunk));
    expect(refusal).toMatchObject({ code: "offset_mismatch", param: "offset", partial: { cursor: 16 } });
    expect(await statusOf(door, id)).toMatchObject({ offset: 16 });
  });

  test("past the declared size nothing is stored", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 10 });
    await answerOf(write(door, id, 0, bytes.subarray(0, 8)));
    const refusal = await refusalOf(write(door, id, 8, bytes.subarray(8, 11)));
    expect(refusal).toMatchObject({ code: "size_mismatch", partial: { cursor: 8, size: 10 } });
    expect(await statusOf(door, id)).toMatchObject({ offset: 8 });
  });

  test("another instance knows the last chunk too", async () => {
    const { files, second } = await startFiles();
    const door = await openDoor(files);
    const other = await openDoor(second().files);
    const id = await openUpload(door, { size: 16 });
    await answerOf(write(door, id, 0, bytes.subarray(0, 4)));
    await answerOf(write(door, id, 4, bytes.subarray(4, 8)));
    expect(await answerOf(write(other, id, 4, bytes.subarray(4, 8)))).toMatchObject({ nextOffset: 8 });
    expect((await refusalOf(write(other, id, 0, bytes.subarray(0, 8)))).code).toBe("offset_mismatch");
  });

  test("a chunk with its digest is checked before it is stored", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door);
    const wrong = await refusalOf(write(door, id, 0, bytes, { sha256: sha256("other") }));
    expect(wrong).toMatchObject({ code: "checksum_mismatch", partial: { cursor: 0 } });
    expect((await refusalOf(write(door, id, 0, bytes, { sha256: "abc" }))).code).toBe("checksum_mismatch");
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
    expect(await answerOf(write(door, id, 0, bytes, { sha256: sha256(bytes) }))).toMatchObject({
      nextOffset: 16,
    });
  });
});

// CASES part 2, files: "resume after a restart always fails".
test("P58: restarted after every chunk, the upload goes on where it was, and its sha256 is right", async () => {
  const started = await startFiles();
  const whole = someBytes(5_000);
  const id = await openUpload(await openDoor(started.files), { size: 5_000, sha256: sha256(whole) });
  let current = started;
  for (let offset = 0; offset < whole.length; offset += 500) {
    await current.files.close();
    current = current.second();
    const door = await openDoor(current.files);
    expect(await statusOf(door, id)).toMatchObject({ offset });
    await answerOf(write(door, id, offset, whole.subarray(offset, offset + 500)));
  }
  const door = await openDoor(current.second().files);
  expect(await answerOf(door.call("file_transfer_commit", { transferId: id }))).toMatchObject({
    sha256: sha256(whole),
  });
});

describe("P62: true limits", () => {
  const maxMessageBytes = 64 * 1024;

  test("the largest chunk that is advertised fits one message; one more byte is refused with the limit", async () => {
    const { files } = await startFiles({ maxMessageBytes });
    const door = await openDoor(files);
    const id = await openUpload(door);
    const { chunkBytes } = (await statusOf(door, id)) as { chunkBytes: number };
    const chunk = someBytes(chunkBytes);
    const params = {
      name: "file_transfer_write",
      arguments: { transferId: id, offset: 0, data: chunk.toString("base64") },
    };
    expect(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }).length).toBeLessThan(
      maxMessageBytes,
    );
    // And not much smaller than it could be.
    expect(chunkBytes).toBeGreaterThan((maxMessageBytes * 3) / 4 - 8 * 1024);
    expect(await refusalOf(write(door, id, 0, someBytes(chunkBytes + 1)))).toMatchObject({
      code: "chunk_too_large",
      message: expect.stringContaining(String(chunkBytes)) as string,
      partial: { maxBytes: chunkBytes },
    });
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
    expect(await answerOf(write(door, id, 0, chunk))).toMatchObject({ nextOffset: chunkBytes });
  });

  test("the largest piece that can be read fits one message", async () => {
    const { files } = await startFiles({ maxMessageBytes });
    const door = await openDoor(files);
    await publishBytes(door, "down.bin", someBytes(40_000));
    const opened = await answerOf(
      door.call("file_transfer_open", { direction: "download", path: "down.bin" }),
    );
    const { chunkBytes, transferId } = opened as { chunkBytes: number; transferId: string };
    const answer = await door.call("file_transfer_read", { transferId, offset: 0, length: chunkBytes });
    expect(answer.structured["length"]).toBe(chunkBytes);
    const result = { content: [{ type: "text", text: answer.text }], structuredContent: answer.structured };
    expect(JSON.stringify({ jsonrpc: "2.0", id: 1, result }).length).toBeLessThan(maxMessageBytes);
    const refusal = await refusalOf(
      door.call("file_transfer_read", { transferId, offset: 0, length: chunkBytes + 1 }),
    );
    expect(refusal).toMatchObject({ code: "chunk_too_large", partial: { maxBytes: chunkBytes } });
  });
});

describe("P59: sizes", () => {
  const chunkBytes = 1_000;

  test.each(
    [0, 1, chunkBytes - 1, chunkBytes, chunkBytes + 1, 2 * chunkBytes].flatMap(
      (size) =>
        [
          [size, "declared"],
          [size, "unknown"],
        ] as const,
    ),
  )("%i bytes, size %s, arrive whole", async (size, declared) => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    const whole = someBytes(size);
    const id = await openUpload(door, declared === "declared" ? { size } : {});
    for (let offset = 0; offset < size; offset += chunkBytes)
      await answerOf(write(door, id, offset, whole.subarray(offset, offset + chunkBytes)));
    const committed = await answerOf(
      door.call("file_transfer_commit", { transferId: id, sha256: sha256(whole) }),
    );
    expect(committed).toMatchObject({ status: "committed", size, sha256: sha256(whole) });
    expect(await readFile(join(box, "file.bin"))).toEqual(whole);
  });

  test.each([-1, 1.5, 2 ** 60])("size %d is refused at the opening", async (size) => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const refusal = await refusalOf(
      door.call("file_transfer_open", { direction: "upload", path: "a", size }),
    );
    expect(refusal).toMatchObject({ code: "size_mismatch", param: "size" });
  });
});

describe("base64 is taken to the letter", () => {
  test.each([
    ["white space", "MDEy MzQ="],
    ["a line break", "MDEyMzQ1\n"],
    ["the alphabet of URLs", "-_-_"],
    ["missing padding", "MDE"],
    ["padding inside", "MDE=MDE="],
    ["loose bits", "MDF="],
    ["one character", "M"],
    ["nothing but padding", "===="],
    ["text", "hello, world!"],
  ])("%s is refused, and nothing is stored", async (_name, data) => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door);
    const refusal = await refusalOf(door.call("file_transfer_write", { transferId: id, offset: 0, data }));
    expect(refusal).toMatchObject({ code: "invalid_base64", param: "data" });
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
  });

  test("one text stands for one sequence of bytes, and every other text is refused", () => {
    assert(
      property(uint8Array({ maxLength: 64 }), string({ maxLength: 8 }), (some, noise) => {
        const text = Buffer.from(some).toString("base64");
        expect(decodeBase64(text)).toEqual(Buffer.from(some));
        const mutated = text.slice(0, -1) + noise;
        const decoded = Buffer.from(mutated, "base64");
        if (decoded.toString("base64") === mutated) expect(decodeBase64(mutated)).toEqual(decoded);
        else expect(() => decodeBase64(mutated)).toThrow(expect.objectContaining({ code: "invalid_base64" }));
      }),
      { numRuns: 2_000 },
    );
  });
});
