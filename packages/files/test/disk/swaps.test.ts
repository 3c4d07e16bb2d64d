import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import type { BeforeOperation } from "./support/failing-files.ts";
import { watchedFiles } from "./support/failing-files.ts";
import { openPlayground, secret } from "./support/roots.ts";
import { openFiles } from "./support/snapshot.ts";

const refused = { code: "path_not_allowed" };
const platforms = [
  ["by descriptors", undefined],
  ["by paths", "darwin"],
] as const;

/** Does something once, right before an operation on an entry of this name. */
function rightBefore(operation: string, entry: string, act: () => void): BeforeOperation {
  let isDone = false;
  return ({ name, path }) => {
    if (isDone || name !== operation || basename(path) !== entry) return;
    isDone = true;
    act();
  };
}

for (const [way, platform] of platforms) {
  test(`a file that is swapped between the look at it and its opening is refused, without waiting and without a leak (P64, ${way})`, async () => {
    const swaps: Record<string, (path: string, outside: string) => void> = {
      "a link": (path, outside) => symlinkSync(join(outside, "secret.txt"), path),
      "a pipe": (path) => void execFileSync("mkfifo", [path]),
      "a directory": (path) => mkdirSync(path),
      "another file": (path) => {
        writeFileSync(`${path}.new`, "other");
        renameSync(`${path}.new`, path);
      },
    };
    for (const [what, swap] of Object.entries(swaps)) {
      let act = (): void => undefined;
      const files = watchedFiles(
        rightBefore("open", "a.txt", () => act()),
        platform,
      );
      const { roots, inside, outside } = openPlayground({}, files);
      const path = join(inside, "a.txt");
      writeFileSync(path, "x");
      act = () => {
        if (what !== "another file") rmSync(path);
        swap(path, outside);
      };
      const filesBefore = openFiles();
      await expect(roots.openSource({ root: "files", path: "a.txt" }), what).rejects.toMatchObject(refused);
      expect(openFiles(), what).toBe(filesBefore);
    }
  });

  test(`a device, a pipe or a socket is not even opened (${way})`, async () => {
    const opened: string[] = [];
    const files = watchedFiles(({ name, path }) => {
      if (name === "open") opened.push(basename(path));
    }, platform);
    const { roots, inside } = openPlayground({}, files);
    execFileSync("mkfifo", [join(inside, "pipe")]);
    await expect(roots.openSource({ root: "files", path: "pipe" })).rejects.toMatchObject(refused);
    expect(opened).not.toContain("pipe");
  });

  test(`a parent that is replaced by another directory after the target was resolved is noticed (P64, ${way})`, async () => {
    const { roots, inside } = openPlayground(
      {},
      watchedFiles(() => undefined, platform),
    );
    mkdirSync(join(inside, "parent"));
    await using target = await roots.resolveTarget({ root: "files", path: "parent/new.txt" });
    renameSync(join(inside, "parent"), join(inside, "moved"));
    mkdirSync(join(inside, "parent"));
    await expect(target.directory.confirm()).rejects.toMatchObject({ code: "ESTALE" });
  });
}

test("a parent that leaves the root while it is being opened is refused (P64, by descriptors)", async () => {
  let looks = 0;
  let act = (): void => undefined;
  const files = watchedFiles(({ name }) => {
    // The second one is for the parent: where is it, now that it is open?
    if (name === "readlink" && (looks += 1) === 2) act();
  });
  const { roots, inside, outside } = openPlayground({}, files);
  mkdirSync(join(inside, "parent"));
  act = () => renameSync(join(inside, "parent"), join(outside, "parent"));
  const filesBefore = openFiles();
  await expect(roots.resolveTarget({ root: "files", path: "parent/new.txt" })).rejects.toMatchObject(refused);
  expect(openFiles()).toBe(filesBefore);
});

test("a parent that leaves the root and is replaced by a link to itself while it is being opened is refused (P64, by paths)", async () => {
  let act = (): void => undefined;
  const files = watchedFiles(
    rightBefore("realpath", "parent", () => act()),
    "darwin",
  );
  const { roots, inside, outside } = openPlayground({}, files);
  mkdirSync(join(inside, "parent"));
  act = () => {
    renameSync(join(inside, "parent"), join(outside, "parent"));
    symlinkSync(join(outside, "parent"), join(inside, "parent"));
  };
  await expect(roots.resolveTarget({ root: "files", path: "parent/new.txt" })).rejects.toMatchObject(refused);
});

test("a source whose parent is swapped while the file is opened gives nothing of the outside (P64)", async () => {
  for (const [way, platform] of platforms) {
    let act = (): void => undefined;
    const files = watchedFiles(
      rightBefore("lstat", "secret.txt", () => act()),
      platform,
    );
    const { roots, inside, outside } = openPlayground({}, files);
    mkdirSync(join(inside, "parent"));
    writeFileSync(join(inside, "parent", "secret.txt"), "harmless");
    act = () => {
      renameSync(join(inside, "parent"), join(inside, "moved"));
      symlinkSync(outside, join(inside, "parent"));
    };
    const outcome = await roots.openSource({ root: "files", path: "parent/secret.txt" }).then(
      async (file) => {
        const text = Buffer.from(await file.read(0, 100)).toString();
        await file.close();
        return text;
      },
      (error: { code?: string }) => error.code,
    );
    expect(outcome, way).not.toBe(secret);
    expect(["harmless", "path_not_allowed"], way).toContain(outcome);
    expect(readdirSync(outside).toSorted()).toEqual(["secret.txt", "target"]);
  }
});

test("a disk that spells names in another way is asked for the spelling, and the deny patterns hold for it", async () => {
  // Played: a short name that stands for a long one, as Windows makes them.
  const files = watchedFiles(() => undefined, "darwin");
  const { roots, inside } = openPlayground(
    { deny: ["private-notes.txt"] },
    {
      ...files,
      platform: "darwin",
      realpath: (async (path: string) =>
        path.endsWith("/alias.txt")
          ? path.replace("alias.txt", "Private-Notes.txt")
          : files.realpath(path)) as never,
    },
  );
  writeFileSync(join(inside, "alias.txt"), "x");
  await expect(roots.openSource({ root: "files", path: "alias.txt" })).rejects.toMatchObject(refused);
});
