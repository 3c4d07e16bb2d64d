import { execFileSync } from "node:child_process";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { publish, type PublishPolicy } from "../../src/disk/publish.ts";
import { createRoots } from "../../src/disk/roots.ts";
import { sha256, someBytes } from "./support/bytes.ts";
import { errnoError } from "./support/failing-files.ts";
import { disks, openPress } from "./support/publishing.ts";
import { stage } from "./support/staging.ts";

const policies: readonly PublishPolicy[] = ["fail", "replace", "version"];

for (const disk of disks) {
  test(`verified bytes get their name, and the staged ones are gone (P60, ${disk})`, async () => {
    for (const policy of policies) {
      for (const size of [0, 1, 262_143, 262_144, 262_145, 1_000_000]) {
        const press = await openPress(disk);
        const bytes = someBytes(size);
        expect(await press.print("one", bytes, { policy })).toEqual({
          location: { root: "files", path: "out.bin" },
          sizeBytes: size,
          sha256: sha256(bytes),
        });
        expect(press.names()).toEqual(["out.bin"]);
        expect(press.read("out.bin").equals(bytes), `${policy} ${size}`).toBe(true);
        expect(statSync(join(press.inside, "out.bin")).mode & 0o777).toBe(0o600);
        expect(readdirSync(press.store.dir)).toEqual(["one.json"]);
        await press.store.discard("one");
      }
    }
  });

  test(`fail leaves an existing file alone and everything staged; another path then works (P60, ${disk})`, async () => {
    const press = await openPress(disk);
    writeFileSync(join(press.inside, "out.bin"), "old");
    const bytes = someBytes(1000);
    await expect(press.print("one", bytes)).rejects.toMatchObject({ code: "target_exists", param: "path" });
    expect(press.read("out.bin").toString()).toBe("old");
    expect(press.names()).toEqual(["out.bin"]);
    expect(await press.store.stagedBytes("one")).toBe(1000);
    await press.reprint("one", bytes, { path: "other.bin" });
    expect(press.read("other.bin").equals(bytes)).toBe(true);
  });

  test(`replace puts the new file in the place of the old one (P60, ${disk})`, async () => {
    const press = await openPress(disk);
    writeFileSync(join(press.inside, "out.bin"), "old");
    linkSync(join(press.inside, "out.bin"), join(press.inside, "kept.bin"));
    const bytes = someBytes(1000);
    await press.print("one", bytes, { policy: "replace" });
    expect(press.read("out.bin").equals(bytes)).toBe(true);
    // The old file itself was not written to.
    expect(press.read("kept.bin").toString()).toBe("old");
    expect(press.names()).toEqual(["kept.bin", "out.bin"]);
  });

  test(`version takes the next free name, never one of another file or one that is denied (P60, ${disk})`, async () => {
    const press = await openPress(disk);
    const all = new Map<string, Buffer>();
    for (const [index, name] of ["a.tar.gz", "a.tar-2.gz", "a.tar-3.gz", "a.tar-4.gz"].entries()) {
      const bytes = someBytes(100);
      all.set(name, bytes);
      const { location } = await press.print(`t${index}`, bytes, { policy: "version", path: "a.tar.gz" });
      expect(location).toEqual({ root: "files", path: name });
    }
    for (const [name, bytes] of all) expect(press.read(name).equals(bytes)).toBe(true);
    mkdirSync(join(press.inside, "deep"));
    await press.print("deep1", someBytes(1), { policy: "version", path: "deep/x" });
    const { location } = await press.print("deep2", someBytes(1), { policy: "version", path: "deep/x" });
    expect(location.path).toBe("deep/x-2");
  });

  test(`a race for one name has one winner with fail, and loses nothing with version or replace (P60, ${disk})`, async () => {
    for (const policy of policies) {
      const press = await openPress(disk);
      const contents = Array.from({ length: 12 }, () => someBytes(5000));
      const outcomes = await Promise.allSettled(
        contents.map((bytes, index) => press.print(`t${index}`, bytes, { policy })),
      );
      const won = outcomes.filter(({ status }) => status === "fulfilled").length;
      expect(won, policy).toBe(policy === "fail" ? 1 : 12);
      expect(press.names().length).toBe(policy === "version" ? 12 : 1);
      const wanted = new Set(contents.map(sha256));
      for (const name of press.names())
        expect(wanted.delete(sha256(press.read(name))), `${policy} ${name}`).toBe(true);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome.status === "fulfilled") continue;
        expect(outcome.reason).toMatchObject({ code: "target_exists" });
        expect(await press.store.stagedBytes(`t${index}`)).toBe(5000);
      }
    }
  });

  test(`a wrong size or digest publishes nothing, changes nothing, and a right commit then works (P60, ${disk})`, async () => {
    for (const policy of policies) {
      const press = await openPress(disk);
      const bytes = someBytes(1000);
      await stage(press.store, "one", bytes);
      const before = press.names();
      await expect(press.reprint("one", bytes, { policy, sizeBytes: 1001 })).rejects.toMatchObject({
        code: "size_mismatch",
        partial: { cursor: 1000 },
      });
      await expect(press.reprint("one", bytes, { policy, sizeBytes: 999 })).rejects.toMatchObject({
        code: "size_mismatch",
      });
      await expect(press.reprint("one", bytes, { policy, sha256: sha256("other") })).rejects.toMatchObject({
        code: "checksum_mismatch",
        partial: { sha256: sha256(bytes) },
      });
      expect(press.names()).toEqual(before);
      expect(await press.store.stagedBytes("one")).toBe(1000);
      const published = await press.reprint("one", bytes, { policy, sha256: sha256(bytes).toUpperCase() });
      expect(published.sizeBytes).toBe(1000);
    }
  });

  test(`a link, a directory or a pipe of the target's name is refused with every policy, and what it leads to is untouched (P64, ${disk})`, async () => {
    for (const policy of policies) {
      const press = await openPress(disk);
      const outside = join(press.store.dir, "..", "outside.txt");
      writeFileSync(outside, "outside");
      symlinkSync(outside, join(press.inside, "link"));
      symlinkSync(join(outside, "..", "new.txt"), join(press.inside, "dangling"));
      mkdirSync(join(press.inside, "directory"));
      execFileSync("mkfifo", [join(press.inside, "pipe")]);
      const before = press.names();
      const bytes = someBytes(100);
      await stage(press.store, "one", bytes);
      for (const path of before) {
        await expect(
          press.reprint("one", bytes, { policy, path }),
          `${policy} ${path}`,
        ).rejects.toMatchObject({
          code: "path_not_allowed",
        });
      }
      expect(press.names()).toEqual(before);
      expect(readFileSync(outside, "utf8")).toBe("outside");
      expect(existsSync(join(outside, "..", "new.txt"))).toBe(false);
      expect(await press.store.stagedBytes("one")).toBe(100);
    }
  });

  test(`a parent that is swapped for a link to the outside at any step changes nothing outside (P64, ${disk})`, async () => {
    for (const policy of policies) {
      for (let step = 0; ; step += 1) {
        let steps = -1;
        let swapAt = Infinity;
        const press = await openPress(disk, () => {
          if ((steps += 1) === swapAt) swap();
        });
        const outside = join(press.store.dir, "..", "outside");
        mkdirSync(outside);
        mkdirSync(join(press.inside, "parent"));
        const swap = (): void => {
          renameSync(join(press.inside, "parent"), join(press.inside, "moved"));
          symlinkSync(outside, join(press.inside, "parent"));
        };
        const bytes = someBytes(1000);
        await stage(press.store, "one", bytes);
        steps = -1;
        swapAt = step;
        const outcome = await press.reprint("one", bytes, { policy, path: "parent/out.bin" }).then(
          () => "published",
          (error: { code?: string }) => error.code,
        );
        expect(readdirSync(outside), `${policy}, step ${step}`).toEqual([]);
        if (steps < step) break;
        expect(["published", "path_not_allowed"], `${policy}, step ${step}`).toContain(outcome);
        // Published into the directory that was named, or not at all.
        expect(readdirSync(join(press.inside, "moved")), `${policy}, step ${step}`).toEqual(
          outcome === "published" ? ["out.bin"] : [],
        );
        if (outcome !== "published") expect(await press.store.stagedBytes("one")).toBe(1000);
      }
    }
  });
}

test("version passes over names that are denied", async () => {
  const press = await openPress();
  const roots = createRoots({ files: { path: press.inside, write: true, deny: ["out-2.bin", "OUT-3.bin"] } });
  for (const path of ["out.bin", "out-4.bin"]) {
    const bytes = someBytes(10);
    await stage(press.store, "one", bytes);
    await using target = await roots.resolveTarget({ root: "files", path: "out.bin" });
    const { location } = await press.reprint("one", bytes, { policy: "version", target });
    expect(location.path).toBe(path);
    await press.store.discard("one");
  }
});

test("a parent that has left the root when the name is to be given is refused, with the file (P64)", async () => {
  for (const disk of disks) {
    const press = await openPress(disk);
    const away = join(press.inside, "..", "away");
    mkdirSync(join(press.inside, "parent"));
    const bytes = someBytes(1000);
    await stage(press.store, "one", bytes);
    const onPrepared = (): void => renameSync(join(press.inside, "parent"), away);
    await expect(press.reprint("one", bytes, { path: "parent/out.bin", onPrepared })).rejects.toMatchObject({
      code: "path_not_allowed",
    });
    expect(readdirSync(away), disk).toEqual([]);
    expect(await press.store.stagedBytes("one")).toBe(1000);
  }
});

test("a placeholder whose file could not follow is taken away again", async () => {
  let isFailing = true;
  const press = await openPress("disk without links", (name) => {
    if (name === "rename" && isFailing) throw errnoError("EIO");
  });
  const bytes = someBytes(10);
  await expect(press.print("one", bytes)).rejects.toMatchObject({ code: "store_unavailable" });
  expect(press.names()).toEqual([]);
  isFailing = false;
  await press.reprint("one", bytes);
  expect(press.read("out.bin").equals(bytes)).toBe(true);
});

test("bytes that change while they are read are transfer_busy, and stay staged", async () => {
  for (const disk of disks) {
    const press = await openPress(disk);
    const bytes = someBytes(600_000);
    await stage(press.store, "one", bytes);
    const path = join(press.store.dir, "one.part");
    const onProgress = (doneBytes: number): void => {
      if (doneBytes > 262_144) return;
      const changed = Buffer.from(bytes);
      changed[599_999] = (changed[599_999] ?? 0) ^ 1;
      writeFileSync(path, changed);
    };
    await expect(press.reprint("one", bytes, { onProgress })).rejects.toMatchObject({
      code: "transfer_busy",
    });
    expect(press.names()).toEqual([]);
    expect(await press.store.stagedBytes("one")).toBe(600_000);
  }
});

test("bytes that change after they were verified, or another file under their path, do not get the name", async () => {
  for (const disk of disks) {
    for (const swap of [
      (path: string) => writeFileSync(path, someBytes(1000)),
      (path: string) => {
        writeFileSync(`${path}.new`, someBytes(1000));
        renameSync(`${path}.new`, path);
      },
    ]) {
      const press = await openPress(disk);
      const bytes = someBytes(1000);
      await stage(press.store, "one", bytes);
      const onPrepared = (): void => {
        const [copy] = press.names();
        swap(copy === undefined ? join(press.store.dir, "one.part") : join(press.inside, copy));
      };
      await expect(press.reprint("one", bytes, { onPrepared }), disk).rejects.toMatchObject({
        code: "transfer_busy",
      });
      expect(press.names()).toEqual([]);
    }
  }
});

test("a commit that is given up while it reads leaves everything staged and no copy behind; progress is told", async () => {
  for (const disk of disks) {
    const press = await openPress(disk);
    const bytes = someBytes(1_000_000);
    await stage(press.store, "one", bytes);
    const ending = new AbortController();
    const onProgress = (doneBytes: number): void => {
      if (doneBytes > 500_000) ending.abort(new Error("given up"));
    };
    await expect(press.reprint("one", bytes, { onProgress, signal: ending.signal })).rejects.toThrow(
      "given up",
    );
    expect(press.names()).toEqual([]);
    const told: number[] = [];
    await press.reprint("one", bytes, {
      onProgress: (doneBytes, sizeBytes) => told.push(doneBytes, sizeBytes),
    });
    expect(told.slice(-2)).toEqual([1_000_000, 1_000_000]);
  }
  const press = await openPress();
  const bytes = someBytes(1000);
  const ending = new AbortController();
  const open = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 500);
    ending.abort(new Error("given up"));
    yield bytes.subarray(500);
  };
  const elsewhere = press.reprint("-", bytes, { staged: { open }, signal: ending.signal });
  await expect(elsewhere).rejects.toThrow("given up");
  expect(press.names()).toEqual([]);
});

test("bytes of a store elsewhere are copied and verified; too many are not even written", async () => {
  const press = await openPress();
  const bytes = someBytes(700_000);
  let given = 0;
  const open = async function* (): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 100_000) {
      given += 1;
      yield bytes.subarray(at, at + 100_000);
    }
  };
  await expect(press.reprint("-", bytes, { staged: { open }, sizeBytes: 250_000 })).rejects.toMatchObject({
    code: "size_mismatch",
  });
  expect(given).toBe(3);
  await expect(press.reprint("-", bytes, { staged: { open }, sizeBytes: 700_001 })).rejects.toMatchObject({
    code: "size_mismatch",
    partial: { cursor: 700_000 },
  });
  await expect(press.reprint("-", bytes, { staged: { open }, sha256: sha256("") })).rejects.toMatchObject({
    code: "checksum_mismatch",
  });
  const failing = async function* (): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 100);
    throw new Error("the store elsewhere failed");
  };
  await expect(press.reprint("-", bytes, { staged: { open: failing } })).rejects.toThrow(
    "the store elsewhere failed",
  );
  expect(press.names()).toEqual([]);
  await press.reprint("-", bytes, { staged: { open } });
  expect(press.read("out.bin").equals(bytes)).toBe(true);
});

test("a disk that is full in the middle of a copy is no_space; the copy is removed, the bytes stay staged (P67)", async () => {
  let isFull = true;
  const press = await openPress("two mounts of one disk", (name) => {
    if (isFull && name === "handle.write") throw errnoError("ENOSPC");
  });
  const bytes = someBytes(1000);
  await expect(press.print("one", bytes)).rejects.toMatchObject({ code: "no_space", retryable: true });
  expect(press.names()).toEqual([]);
  isFull = false;
  await press.reprint("one", bytes);
  expect(press.read("out.bin").equals(bytes)).toBe(true);
});

test("the bytes are flushed before they have their name, and the name before the call resolves; without flush, nothing is", async () => {
  for (const disk of disks) {
    for (const flush of [true, false]) {
      const steps: string[] = [];
      const press = await openPress(disk, (name) => {
        if (/sync|^link$|^rename$|unlink/.test(name)) steps.push(name.replace("handle.", ""));
      });
      await press.print("one", someBytes(1000), { flush, onPrepared: () => void steps.push("note") });
      const flushes = steps.filter((step) => step === "sync").length;
      // The staged file, and a copy where there is one; and the directory.
      expect(flushes, `${disk} ${flush}`).toBe(flush ? (disk === "two mounts of one disk" ? 3 : 2) : 0);
      if (!flush) continue;
      const named = Math.max(steps.lastIndexOf("link"), steps.lastIndexOf("rename"));
      expect(steps.indexOf("sync")).toBeLessThan(steps.lastIndexOf("note"));
      expect(steps.lastIndexOf("note")).toBeLessThan(named);
      expect(steps.lastIndexOf("sync")).toBeGreaterThan(named);
      expect(steps.lastIndexOf("unlink")).toBeGreaterThan(steps.lastIndexOf("sync"));
    }
  }
});

test("published files get the mode of their root, and never more than 0600 while they are not verified", async () => {
  for (const disk of disks) {
    const press = await openPress(disk);
    const roots = createRoots({ files: { path: press.inside, write: true, fileMode: 0o644 } });
    const bytes = someBytes(10);
    await stage(press.store, "one", bytes);
    await using target = await roots.resolveTarget({ root: "files", path: "out.bin" });
    const modes: number[] = [];
    const onProgress = (): void => {
      modes.push(statSync(join(press.store.dir, "one.part")).mode & 0o777);
      for (const name of press.names()) modes.push(statSync(join(press.inside, name)).mode & 0o777);
    };
    await publish({
      staged: { store: press.store, id: "one" },
      target,
      sizeBytes: 10,
      policy: "fail",
      onProgress,
    });
    expect(new Set(modes)).toEqual(new Set([0o600]));
    expect(statSync(join(press.inside, "out.bin")).mode & 0o777).toBe(0o644);
  }
});

test("an upload that is not there cannot be published", async () => {
  const press = await openPress();
  await expect(press.reprint("nobody", someBytes(1))).rejects.toMatchObject({ code: "unknown_transfer" });
});
