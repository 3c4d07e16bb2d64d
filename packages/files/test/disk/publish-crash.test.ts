import { linkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { PublishNote, PublishPolicy } from "../../src/disk/publish.ts";
import { sha256, someBytes } from "./support/bytes.ts";
import { disks, openPress } from "./support/publishing.ts";
import { stage } from "./support/staging.ts";

const policies: readonly PublishPolicy[] = ["fail", "replace", "version"];
const old = "the old file";

/** What a process that died leaves undone: this, and everything after it. */
class Died extends Error {}

for (const disk of disks) {
  for (const policy of policies) {
    const hasOld = policy !== "fail";

    test(`died before any step, the target is whole, old or new, and the repeated commit ends the same (${disk}, ${policy})`, async () => {
      let deaths = 0;
      for (let step = 0; ; step += 1) {
        let left = Infinity;
        const alive = (): void => {
          if ((left -= 1) < 0) throw new Died();
        };
        const press = await openPress(disk, alive);
        const bytes = someBytes(1000);
        if (hasOld) writeFileSync(join(press.inside, "out.bin"), old);
        await stage(press.store, "one", bytes);
        let kept: PublishNote | undefined;
        const onPrepared = (note: PublishNote): void => {
          alive();
          kept = note;
        };
        left = step;
        const end = await press.reprint("one", bytes, { policy, onPrepared }).then(
          () => "published",
          (error: unknown) => ((error as Error).cause ?? error) as Error,
        );
        if (left >= 0) {
          expect(end).toBe("published");
          break;
        }
        deaths += 1;

        const files = press.names().filter((name) => !name.startsWith(".longjobs-"));
        const whole = new Set([sha256(bytes), ...(hasOld ? [sha256(old)] : [])]);
        for (const name of files) {
          // On a disk without links an empty file keeps the name for a moment.
          const isPlaceholder = disk === "disk without links" && press.read(name).length === 0;
          expect(whole.has(sha256(press.read(name))) || isPlaceholder, `${name}, step ${step}`).toBe(true);
        }
        if (hasOld) expect(files, `step ${step}`).toContain("out.bin");

        left = Infinity;
        const prepared = kept === undefined ? {} : { prepared: kept };
        const { location } = await press.reprint("one", bytes, { policy, onPrepared, ...prepared });
        expect(location.path, `step ${step}`).toBe(policy === "version" ? "out-2.bin" : "out.bin");
        expect(press.read(location.path).equals(bytes), `step ${step}`).toBe(true);
        if (policy === "version") expect(press.read("out.bin").toString()).toBe(old);
        await press.store.discard("one");
        await press.roots.sweepTemporaries({ olderThanMs: -1000 });
        expect(press.names(), `step ${step}`).toEqual(
          policy === "version" ? ["out-2.bin", "out.bin"] : ["out.bin"],
        );
      }
      expect(deaths).toBeGreaterThan(5);
    });
  }

  test(`a note proves nothing for other bytes: a stranger's file stays a stranger's (${disk})`, async () => {
    const press = await openPress(disk);
    const bytes = someBytes(1000);
    await stage(press.store, "one", bytes);
    writeFileSync(join(press.inside, "out.bin"), bytes);
    const { ino } = statSync(join(press.inside, "out.bin"), { bigint: true });
    const note = { ino: String(ino), sizeBytes: 1000, sha256: sha256(bytes) };
    for (const prepared of [
      { ...note, ino: "1" },
      { ...note, sizeBytes: 999 },
      { ...note, sha256: sha256("") },
      { ...note, ino: "1", placeholder: "out.bin" },
      { ...note, ino: "1", placeholder: "other.bin" },
    ]) {
      await expect(press.reprint("one", bytes, { prepared }), JSON.stringify(prepared)).rejects.toMatchObject(
        {
          code: "target_exists",
        },
      );
    }
    expect(await press.store.stagedBytes("one")).toBe(1000);
  });
}

test("on a disk without links, only the empty file that the note names is taken for a placeholder", async () => {
  const press = await openPress("disk without links");
  const bytes = someBytes(10);
  await stage(press.store, "one", bytes);
  for (const name of ["out.bin", "other.bin"]) writeFileSync(join(press.inside, name), "");
  const prepared = { ino: "1", sizeBytes: 10, sha256: sha256(bytes), placeholder: "other.bin" };
  await expect(press.reprint("one", bytes, { prepared })).rejects.toMatchObject({ code: "target_exists" });
  await press.reprint("one", bytes, { prepared, path: "other.bin" });
  expect(press.read("out.bin").length).toBe(0);
  expect(press.read("other.bin").equals(bytes)).toBe(true);
});

test("on a disk without links, a placeholder whose race was lost is not noted any more", async () => {
  const notes: PublishNote[] = [];
  let path = "";
  const press = await openPress("disk without links", (name, opened) => {
    if (name === "open" && opened.endsWith("/out.bin")) writeFileSync(path, "");
  });
  path = join(press.inside, "out.bin");
  await expect(
    press.print("one", someBytes(10), { onPrepared: (note) => void notes.push(note) }),
  ).rejects.toMatchObject({
    code: "target_exists",
  });
  expect(notes.map(({ placeholder }) => placeholder)).toEqual([undefined, "out.bin", undefined]);
});

test("a note of bytes that were published before proves nothing for others that were staged since", async () => {
  const press = await openPress();
  const first = someBytes(1000);
  let prepared: PublishNote | undefined;
  await press.print("one", first, { onPrepared: (note) => void (prepared = note) });
  await press.store.discard("one");
  for (const bytes of [someBytes(1000), someBytes(10)]) {
    await stage(press.store, "one", bytes);
    await expect(press.reprint("one", bytes, { prepared })).rejects.toMatchObject({ code: "target_exists" });
    if (bytes.length !== first.length) {
      const undeclared = press.reprint("one", bytes, { prepared, sha256: undefined });
      await expect(undeclared).rejects.toMatchObject({ code: "target_exists" });
    }
    await press.reprint("one", bytes, { prepared, policy: "replace" });
    expect(press.read("out.bin").equals(bytes)).toBe(true);
    await press.store.discard("one");
    await press.print("two", first, { policy: "replace", onPrepared: (note) => void (prepared = note) });
    await press.store.discard("two");
  }
  // The same bytes, though, are the ones that were published.
  await stage(press.store, "one", first);
  await press.reprint("one", first, { prepared });
  expect(press.names()).toEqual(["out.bin"]);
});

test("without notes, a link that was given before the death is still known by its inode", async () => {
  for (const policy of ["fail", "version", "replace"] as const) {
    const press = await openPress();
    const bytes = someBytes(10);
    await stage(press.store, "one", bytes);
    linkSync(join(press.store.dir, "one.part"), join(press.inside, "out.bin"));
    const { location } = await press.reprint("one", bytes, { policy });
    expect(location.path).toBe("out.bin");
    expect(press.names()).toEqual(["out.bin"]);
    await press.store.discard("one");
  }
});
