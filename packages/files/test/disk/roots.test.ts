import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { isLongJobsError } from "@longjobs/core";
import { expect, onTestFinished, test } from "vitest";
import { createRoots, type Roots } from "../../src/disk/roots.ts";
import { makeTemporaryName } from "../../src/disk/temporary-name.ts";
import { errnoError, watchedFiles } from "./support/failing-files.ts";
import { openPlayground, secret, ways } from "./support/roots.ts";
import { tempDir } from "./support/temp-dir.ts";

const refused = { code: "path_not_allowed", retryable: false };

/** Everything that a client may try with a path. */
async function tryPath(roots: Roots, path: string): Promise<void> {
  const location = { root: "files", path };
  await expect(roots.openSource(location), `read ${JSON.stringify(path)}`).rejects.toMatchObject(refused);
  for (const createParents of [false, true]) {
    await expect(
      roots.resolveTarget(location, { createParents }),
      `write ${JSON.stringify(path)}`,
    ).rejects.toMatchObject(refused);
    await expect(
      roots.checkTarget(location, { createParents }),
      `check ${JSON.stringify(path)}`,
    ).rejects.toMatchObject(refused);
  }
}

const badPaths = [
  "",
  "/",
  ".",
  "..",
  "./a",
  "a/.",
  "a/..",
  "../root-secret/secret.txt",
  "../root/a",
  "a/../../root-secret/secret.txt",
  "/etc/passwd",
  "//etc/passwd",
  "a//b",
  "a/",
  "directory/",
  "a\0.txt",
  "a\nb",
  "a\u001b[2Jb",
  "a\u0085b",
  "..\\root-secret\\secret.txt",
  "a\\b",
  "C:\\windows",
  "\ud800",
  "a".repeat(256),
  "a/".repeat(2048) + "a",
  ".longjobs-0123456789abcdef0123456789abcdef.part",
  ".LongJobs-0123456789ABCDEF0123456789ABCDEF.PART",
  ".long\u200djobs-0123456789abcdef0123456789abcdef.part",
  "a/.longjobs-0123456789abcdef0123456789abcdef.part/b",
  null,
  undefined,
  5,
  {},
  ["a"],
] as string[];

for (const [way, files] of ways) {
  test(`a path that could mean another place is refused, for reading and for writing, and makes nothing (P64, ${way})`, async () => {
    const { roots, inside, outside } = openPlayground({}, files);
    mkdirSync(join(inside, "a"));
    mkdirSync(join(inside, "directory"));
    for (const path of badPaths) await tryPath(roots, path);
    expect(readdirSync(inside).toSorted()).toEqual(["a", "directory"]);
    expect(readdirSync(join(inside, "a"))).toEqual([]);
    expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe(secret);
  });

  test(`no link leads anywhere: to a file, to a directory, to nothing, to itself, or inside (P64, ${way})`, async () => {
    const { roots, inside, outside } = openPlayground({}, files);
    writeFileSync(join(inside, "real.txt"), "real");
    mkdirSync(join(inside, "real"));
    const links = {
      "file-out": join(outside, "secret.txt"),
      "file-in": "real.txt",
      "directory-out": outside,
      "directory-in": "real",
      parent: "..",
      dangling: join(outside, "new.txt"),
      loop: "loop",
      proc: "/proc/self/cwd",
    };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(inside, name));
    symlinkSync(outside, join(inside, "real", "deep"));
    for (const path of [
      "directory-out/secret.txt",
      "directory-out/new.txt",
      "directory-out/target/new.txt",
      "directory-in/new.txt",
      "real/deep/secret.txt",
      "real/deep/new/new.txt",
      "parent/root-secret/secret.txt",
      "dangling/new.txt",
      "loop/new.txt",
      "proc/new.txt",
      "real.txt/new.txt",
    ]) {
      await tryPath(roots, path);
    }
    for (const name of Object.keys(links)) {
      const location = { root: "files", path: name };
      await expect(roots.openSource(location), name).rejects.toMatchObject(refused);
      await expect(roots.checkTarget(location), name).rejects.toMatchObject(refused);
    }
    expect(readdirSync(outside).toSorted()).toEqual(["secret.txt", "target"]);
    expect(readdirSync(join(outside, "target"))).toEqual([]);
    expect(readdirSync(join(inside, "real"))).toEqual(["deep"]);
  });

  test(`directories, pipes, sockets and devices are refused at once, and no one waits for the other end of a pipe (${way})`, async () => {
    const { roots, inside } = openPlayground({}, files);
    mkdirSync(join(inside, "directory"));
    execFileSync("mkfifo", [join(inside, "pipe")]);
    const server = createServer().listen(join(inside, "socket"));
    onTestFinished(() => void server.close());
    await new Promise((listening) => server.once("listening", listening));
    const names = ["directory", "pipe", "socket"];
    try {
      execFileSync("mknod", [join(inside, "device"), "c", "1", "5"], { stdio: "ignore" });
      names.push("device");
    } catch {
      // Only root makes devices; the other three are refused by the same line.
    }
    for (const path of names) {
      await expect(roots.openSource({ root: "files", path }), path).rejects.toMatchObject(refused);
      await expect(roots.checkTarget({ root: "files", path }), path).rejects.toMatchObject(refused);
      await tryPath(roots, `${path === "directory" ? "pipe" : path}/below.txt`);
    }
  });

  test(`a parent that is swapped for a link after the target was resolved is noticed (P64, ${way})`, async () => {
    const { roots, inside, outside } = openPlayground({}, files);
    mkdirSync(join(inside, "parent"));
    await using target = await roots.resolveTarget({ root: "files", path: "parent/new.txt" });
    renameSync(join(inside, "parent"), join(inside, "moved"));
    symlinkSync(join(outside, "target"), join(inside, "parent"));
    await expect(target.directory.confirm()).rejects.toMatchObject({ code: "ESTALE" });
  });

  test(`what is allowed works: nested files, parents that are made, odd but harmless names (${way})`, async () => {
    const { roots, inside } = openPlayground({ fileMode: 0o640 }, files);
    for (const path of [
      "a.txt",
      "deep/er/b.txt",
      "ä ö.txt",
      "..a",
      "a..",
      "...",
      "-rf",
      "*",
      "%2e%2e",
      "~",
      "$HOME",
      "日本.txt",
    ]) {
      const location = { root: "files", path };
      expect(await roots.checkTarget(location, { createParents: true })).toBe(false);
      const target = await roots.resolveTarget(location, { createParents: true });
      expect(await target.exists()).toBe(false);
      await target.close();
      writeFileSync(join(inside, path), path);
      expect(await roots.checkTarget(location)).toBe(true);
      await using file = await roots.openSource(location);
      expect(Buffer.from(await file.read(0, 100)).toString()).toBe(path);
    }
    expect(statSync(join(inside, "deep", "er")).mode & 0o777).toBe(0o640 | 0o110);
  });

  test(`parents are made only where that was asked for, and never by a check (${way})`, async () => {
    const { roots, inside } = openPlayground({}, files);
    const location = { root: "files", path: "new/er/a.txt" };
    await expect(roots.resolveTarget(location)).rejects.toMatchObject(refused);
    await expect(roots.checkTarget(location)).rejects.toMatchObject(refused);
    expect(await roots.checkTarget(location, { createParents: true })).toBe(false);
    expect(existsSync(join(inside, "new"))).toBe(false);
    const made = await Promise.all(
      Array.from({ length: 8 }, () => roots.resolveTarget(location, { createParents: true })),
    );
    for (const target of made) await target.close();
    expect(readdirSync(join(inside, "new"))).toEqual(["er"]);
  });

  test(`deny patterns hold for reading and writing, for every spelling, and for all that lies below (${way})`, async () => {
    const deny = [".git", "*.key", "private/*.txt", "a/**/z", "exact/path.bin", "what?"];
    const { roots, inside } = openPlayground({ deny }, files);
    for (const path of [
      ".git/config",
      ".GIT/config",
      "sub/.git/config",
      ".g\u200cit/config",
      "id.key",
      "ID.KEY",
      "deep/er/id.Key",
      "id.\u212Aey",
      "deep.key/inside.txt",
      "private/a.txt",
      "Private/A.TXT",
      "private/a.txt/below",
      "a/z",
      "a/b/z",
      "a/b/c/z",
      "exact/path.bin",
      "what1",
    ]) {
      mkdirSync(join(inside, path, ".."), { recursive: true });
      writeFileSync(join(inside, path), "x");
      await tryPath(roots, path);
      rmSync(join(inside, path.split("/")[0] ?? ""), { recursive: true });
    }
    for (const path of [
      "git/config",
      "key",
      "id.keys",
      "private/b/a.txt",
      "other/private/a.txt",
      "b/a/z",
      "path.bin",
      "what",
      "what12",
    ]) {
      mkdirSync(join(inside, path, ".."), { recursive: true });
      writeFileSync(join(inside, path), "x");
      await (await roots.openSource({ root: "files", path })).close();
      rmSync(join(inside, path.split("/")[0] ?? ""), { recursive: true });
    }
    // Refused before anything is made.
    for (const path of [".git/new/er", "new/er/id.key", "a/new/er/z"]) await tryPath(roots, path);
    expect(readdirSync(inside)).toEqual([]);
  });

  test(`what copies left behind is swept, with everything else left alone (${way})`, async () => {
    const { roots, inside, outside } = openPlayground({}, files);
    mkdirSync(join(inside, "deep", "er"), { recursive: true });
    symlinkSync(outside, join(inside, "deep", "link"));
    const names = Array.from({ length: 5 }, makeTemporaryName) as [string, string, string, string, string];
    const [old, deep, young, beyond, directory] = names;
    for (const path of [
      join(inside, old),
      join(inside, "deep/er", deep),
      join(inside, young),
      join(outside, beyond),
      join(inside, "keep.part"),
      join(inside, ".longjobs-1.part"),
    ]) {
      writeFileSync(path, "x");
    }
    mkdirSync(join(inside, directory));
    for (const path of [join(inside, old), join(inside, "deep/er", deep), join(outside, beyond)])
      utimesSync(path, 0, 0);
    expect(await roots.sweepTemporaries()).toEqual({ removed: 2, young: 1 });
    // Again only while there are young ones.
    expect(await roots.sweepTemporaries({ olderThanMs: -1000 })).toEqual({ removed: 1, young: 0 });
    writeFileSync(join(inside, old), "x");
    expect(await roots.sweepTemporaries({ olderThanMs: -1000 })).toEqual({ removed: 0, young: 0 });
    rmSync(join(inside, old));
    expect(readdirSync(inside).toSorted()).toEqual(
      [".longjobs-1.part", directory, "deep", "keep.part"].toSorted(),
    );
    expect(existsSync(join(outside, beyond))).toBe(true);
  });
}

test("a root that cannot be written is not swept, and a directory that cannot be read is reported", async () => {
  const { inside } = openPlayground();
  mkdirSync(join(inside, "closed"));
  const path = join(inside, makeTemporaryName());
  writeFileSync(path, "x");
  const readOnly = createRoots({ files: { path: inside } });
  expect(await readOnly.sweepTemporaries({ olderThanMs: -1000 })).toEqual({ removed: 0, young: 0 });
  const errors: unknown[] = [];
  const files = watchedFiles(({ name, path: opened }) => {
    if (name === "open" && opened.endsWith("/closed")) throw errnoError("EACCES");
  });
  const roots = createRoots({ files: { path: inside, write: true } }, files);
  const onError = (error: unknown): void => void errors.push(error);
  expect(await roots.sweepTemporaries({ olderThanMs: -1000, onError })).toEqual({ removed: 1, young: 0 });
  expect(errors).toMatchObject([{ code: "EACCES" }]);
});

test("a root is named by its name, with the right that is asked for; the refusal tells which there are", async () => {
  const { inside } = openPlayground();
  const roots = createRoots({
    inbox: { path: inside, read: false, write: true },
    outbox: { path: inside },
    both: { path: inside, write: true },
  });
  expect(roots.names("read")).toEqual(["outbox", "both"]);
  expect(roots.names("write")).toEqual(["inbox", "both"]);
  writeFileSync(join(inside, "a.txt"), "x");
  for (const root of ["inbox", "nobody", "__proto__", "constructor", "", "../outbox", null, 5] as unknown[]) {
    await expect(
      roots.openSource({ root: root as string, path: "a.txt" }),
      String(root),
    ).rejects.toMatchObject({
      ...refused,
      recoveryHint: "Name one of these roots: outbox, both.",
    });
  }
  await expect(roots.resolveTarget({ root: "outbox", path: "b.txt" })).rejects.toMatchObject({
    ...refused,
    recoveryHint: "Name one of these roots: inbox, both.",
  });
});

test("no refusal tells where a root is, or how long a name was (P64)", async () => {
  const { roots, inside, outside } = openPlayground({ deny: ["denied"] });
  symlinkSync(outside, join(inside, "link"));
  const paths = [
    ...badPaths,
    "link/a",
    "nothing.txt",
    "nothing/a.txt",
    "denied",
    "x".repeat(10_000),
    "a".repeat(255),
  ];
  for (const path of paths) {
    for (const call of [
      () => roots.openSource({ root: "files", path }),
      () => roots.resolveTarget({ root: "files", path: `${path}/b` }),
    ]) {
      const error: unknown = await call().catch((rejection: unknown) => rejection);
      expect(isLongJobsError(error, "path_not_allowed"), JSON.stringify(path)).toBe(true);
      const text = JSON.stringify(error);
      expect(text).not.toContain(join(inside, ".."));
      expect(text.length).toBeLessThan(1000);
    }
  }
});

test("a root that is missing or closed is the server's fault, not the client's", async () => {
  const { roots, inside } = openPlayground();
  rmSync(inside, { recursive: true });
  await expect(roots.openSource({ root: "files", path: "a" })).rejects.toMatchObject({
    code: "store_unavailable",
  });
  for (const createParents of [true, false]) {
    const location = { root: "files", path: "a" };
    await expect(roots.resolveTarget(location, { createParents })).rejects.toMatchObject({
      code: "store_unavailable",
    });
    await expect(roots.checkTarget(location, { createParents })).rejects.toMatchObject({
      code: "store_unavailable",
    });
  }
});

test("a disk that fails under a path is store_unavailable, and one that is full is no_space", async () => {
  for (const [errno, code] of [
    ["EIO", "store_unavailable"],
    ["ENOSPC", "no_space"],
    ["EACCES", "path_not_allowed"],
    ["EROFS", "path_not_allowed"],
  ] as const) {
    const files = watchedFiles(({ name }) => {
      if (name === "mkdir") throw errnoError(errno);
    });
    const { roots } = openPlayground({}, files);
    await expect(
      roots.resolveTarget({ root: "files", path: "new/a" }, { createParents: true }),
      errno,
    ).rejects.toMatchObject({ code });
  }
});

test("bad options of a root are a TypeError at the call", () => {
  const path = tempDir();
  const bad: Record<string, unknown>[] = [
    { files: { path: "relative" } },
    { files: { path: "" } },
    { files: {} },
    { files: { path, read: false } },
    { files: { path, denny: ["x"] } },
    { files: { path, deny: [""] } },
    { files: { path, deny: ["/x"] } },
    { files: { path, deny: ["x/"] } },
    { files: { path, deny: ["a//b"] } },
    { files: { path, deny: ["../x"] } },
    { files: { path, deny: ["a/./b"] } },
    { files: { path, deny: [5] } },
    { files: { path, fileMode: 0o4600 } },
    { files: { path, fileMode: 0o400 } },
    { files: { path, fileMode: 0.5 } },
    { "": { path } },
    { "a/b": { path } },
    { "-a": { path } },
  ];
  for (const roots of bad)
    expect(() => createRoots(roots as never), JSON.stringify(roots)).toThrow(TypeError);
});

test("the server's own directories are outside of every root, also behind links and before they exist", async () => {
  const dir = tempDir();
  for (const name of ["root", "root/inner", "root-secret", "other"]) mkdirSync(join(dir, name));
  symlinkSync(join(dir, "root", "inner"), join(dir, "innocent"));
  symlinkSync(join(dir, "root"), join(dir, "alias"));
  writeFileSync(join(dir, "file"), "");
  const roots = createRoots({ files: { path: join(dir, "root") } });
  for (const staging of [
    join(dir, "root"),
    join(dir, "root", "inner"),
    join(dir, "root", "not", "yet"),
    join(dir, "innocent"),
    join(dir, "innocent", "not-yet"),
    join(dir, "alias"),
    join(dir, "other", "..", "root"),
    dir,
    "/",
  ]) {
    await expect(roots.check({ staging }), staging).rejects.toThrow(TypeError);
    await expect(roots.check({ state: join(dir, "other"), staging }), staging).rejects.toThrow(/staging/);
  }
  for (const staging of [
    join(dir, "root-secret"),
    join(dir, "other"),
    join(dir, "other", "not", "yet"),
    join(dir, "not-yet"),
    join(dir, "file", "below"),
  ]) {
    await roots.check({ staging });
  }
  const aliased = createRoots({ files: { path: join(dir, "alias") } });
  await expect(aliased.check({ staging: join(dir, "root", "inner") })).rejects.toThrow(TypeError);
  await aliased.check({ staging: join(dir, "other") });
  await expect(createRoots({ files: { path: "/" } }).check({ staging: join(dir, "other") })).rejects.toThrow(
    TypeError,
  );
  for (const path of [join(dir, "nothing"), join(dir, "file")]) {
    await expect(createRoots({ files: { path } }).check({}), path).rejects.toThrow(TypeError);
  }
});

test("on Windows, names that mean a device, a stream or another name are refused", async () => {
  const files = watchedFiles(() => undefined, "win32");
  const { roots } = openPlayground({}, files);
  for (const path of [
    "CON",
    "nul.txt",
    "a/COM1",
    "aux.tar.gz",
    "a.txt:stream",
    "a.",
    "a ",
    "a./b",
    "SECRET~1",
    "LPT9",
    "a?b",
    "a|b",
    "<a>",
  ]) {
    await tryPath(roots, path);
  }
  for (const path of ["console.txt", "comic1", "nulls", ".a", "a~b"])
    expect(await roots.checkTarget({ root: "files", path })).toBe(false);
});

test("a system without /proc is served by paths", async () => {
  const files = watchedFiles(({ name, path }) => {
    if (name === "readlink" && path.startsWith("/proc/")) throw errnoError("ENOENT");
    if (path.startsWith("/proc/")) throw errnoError("ENOENT");
  });
  const { roots, inside, outside } = openPlayground({}, files);
  writeFileSync(join(inside, "a.txt"), "x");
  symlinkSync(outside, join(inside, "link"));
  await (await roots.openSource({ root: "files", path: "a.txt" })).close();
  await tryPath(roots, "link/secret.txt");
});
