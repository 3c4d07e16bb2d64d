import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createRoots } from "../../src/disk/roots.ts";
import { StagingStore } from "../../src/disk/staging-store.ts";
import { sha256 } from "./support/bytes.ts";
import { knownBytes } from "./support/known-bytes.ts";
import { runChild } from "./support/run-child.ts";
import { declare, stage } from "./support/staging.ts";
import { otherDisk, tempDir } from "./support/temp-dir.ts";

// More in a long run: LONGJOBS_KILLS=200.
const kills = Number(process.env["LONGJOBS_KILLS"] ?? 20);

test(
  "killed at random during uploads, the offset is never above what is on disk nor below what was acknowledged, and the bytes are right (P58)",
  { timeout: 600_000 },
  async () => {
    const dir = tempDir();
    const sizeBytes = 2_000_003;
    let killed = 0;
    for (let upload = 0; killed < kills; upload += 1) {
      const id = `upload-${upload}`;
      const flush = upload % 2 === 0;
      const store = new StagingStore({ dir });
      await declare(store, id, sizeBytes);
      for (let acknowledged = 0, isWhole = false; !isWhole;) {
        const killAfter = 1 + Math.floor(Math.random() * 100);
        const { told, wasKilled } = await runChild({ act: "stage", dir, flush, id, sizeBytes }, killAfter);
        if (wasKilled) killed += 1;
        for (const message of told) acknowledged = message.acknowledged ?? acknowledged;
        const { offset } = await new StagingStore({ dir }).getUpload(id);
        expect(offset, `after kill ${killed}`).toBeGreaterThanOrEqual(acknowledged);
        const bytes = readFileSync(join(dir, `${id}.part`));
        expect(bytes.length).toBe(offset);
        expect(bytes.equals(knownBytes(0, offset)), `after kill ${killed}`).toBe(true);
        isWhole = offset === sizeBytes;
      }
      await store.remove(id);
    }
    expect(readdirSync(dir)).toEqual([]);
  },
);

test(
  "killed at random during commits, the target is the old file or all of the new one, and the repeated commit ends well (P58, P60)",
  { timeout: 600_000 },
  async () => {
    const dir = tempDir();
    const sizeBytes = 3_000_001;
    const whole = knownBytes(0, sizeBytes);
    const digest = sha256(whole);
    let killed = 0;
    for (let commit = 0; killed < kills / 2; commit += 1) {
      const id = `commit-${commit}`;
      const policy = (["fail", "replace", "version"] as const)[commit % 3] ?? "fail";
      const root = join(commit % 2 === 0 || otherDisk === undefined ? tempDir() : tempDir(otherDisk), "root");
      mkdirSync(root);
      if (policy !== "fail") writeFileSync(join(root, "out.bin"), "old");
      const store = new StagingStore({ dir });
      await stage(store, id, whole);
      const task = { act: "publish", dir, flush: true, id, sizeBytes, sha256: digest, root, policy } as const;
      let published: string | undefined;
      while (published === undefined) {
        const killAfter = 1 + Math.floor(Math.random() * 16);
        const { told, wasKilled } = await runChild(
          { ...task, noteFile: join(root, "..", "note.json") },
          killAfter,
        );
        if (wasKilled) killed += 1;
        published = told.find((message) => message.published !== undefined)?.published;
        for (const name of readdirSync(root).filter((found) => !found.startsWith(".longjobs-"))) {
          const text = sha256(readFileSync(join(root, name)));
          expect([digest, ...(policy === "fail" ? [] : [sha256("old")])], name).toContain(text);
        }
      }
      expect(sha256(readFileSync(join(root, published)))).toBe(digest);
      await store.discard(id);
      await createRoots({ files: { path: root, write: true } }).sweepTemporaries({ olderThanMs: -1000 });
      const names = readdirSync(root).toSorted();
      expect(names).toEqual(policy === "version" ? ["out-2.bin", "out.bin"] : ["out.bin"]);
    }
    expect(readdirSync(dir)).toEqual([]);
  },
);
