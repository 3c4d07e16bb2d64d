import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isLongJobsError } from "@longjobs/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { publish } from "../../src/disk/publish.ts";
import { createRoots, type FileLocation } from "../../src/disk/roots.ts";
import { StagingStore } from "../../src/disk/staging-store.ts";
import { waysToSpell } from "./support/hostile-paths.ts";
import { someBytes } from "./support/bytes.ts";
import { openFiles, snapshot } from "./support/snapshot.ts";
import { openPlayground, secret, ways } from "./support/roots.ts";
import { stage } from "./support/staging.ts";

// More in a long run: LONGJOBS_FUZZ=5000.
const runs = Number(process.env["LONGJOBS_FUZZ"] ?? 500);

for (const [way, files] of ways) {
  test(
    `whatever the path, nothing outside of the root is read or touched, and each refusal has a code (P64, ${way})`,
    { timeout: 600_000 },
    async () => {
      const { inside, outside } = openPlayground();
      const roots = createRoots(
        { files: { path: inside, write: true, deny: ["*.key", "private/**"] }, readOnly: { path: inside } },
        files,
      );
      for (const path of ["a/b", "private", "real"]) mkdirSync(join(inside, path), { recursive: true });
      for (const path of ["a/one.txt", "a/b/two.txt", "top.txt", "private/three.txt", "id.key"]) {
        writeFileSync(join(inside, path), path);
      }
      symlinkSync(outside, join(inside, "link"));
      symlinkSync(join(outside, "secret.txt"), join(inside, "a", "link.txt"));
      symlinkSync("real", join(inside, "loop"));
      symlinkSync(join(outside, "new.txt"), join(inside, "dangling"));
      execFileSync("mkfifo", [join(inside, "pipe")]);
      const store = new StagingStore({ dir: join(outside, "..", "staging") });
      const bytes = someBytes(100);
      await stage(store, "kept", bytes);

      const before = snapshot(outside);
      const filesBefore = openFiles();
      let attempts = 0;
      let published = 0;
      let read = 0;

      const use = async (location: FileLocation, call: string): Promise<void> => {
        if (call === "read") {
          await using file = await roots.openSource(location);
          const text = Buffer.from(await file.read(0, 1000)).toString();
          expect(text).not.toBe(secret);
          read += 1;
        } else if (call === "check") {
          await roots.checkTarget(location, { createParents: true });
        } else {
          attempts += 1;
          const id = `t${attempts}`;
          await using target = await roots.resolveTarget(location, { createParents: call === "parents" });
          await stage(store, id, bytes);
          try {
            const policy = (["fail", "replace", "version"] as const)[attempts % 3] ?? "fail";
            await publish({ staged: { store, id }, target, sizeBytes: 100, policy, flush: false });
            published += 1;
          } finally {
            await store.discard(id);
          }
        }
      };

      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom("files", "files", "files", "readOnly", "nobody", "../root-secret", "__proto__", ""),
          waysToSpell,
          fc.constantFrom("read", "check", "publish", "parents"),
          async (root, path, call) => {
            try {
              await use({ root, path }, call);
            } catch (error) {
              if (!isLongJobsError(error)) throw error;
              expect(error.code).toMatch(/^(?:path_not_allowed|target_exists)$/);
              expect(JSON.stringify(error)).not.toContain(join(inside, ".."));
            }
            expect(snapshot(outside)).toEqual(before);
          },
        ),
        { numRuns: runs },
      );
      expect(await store.stagedBytes("kept")).toBe(100);
      expect(openFiles()).toBe(filesBefore);
      // The test reached what it is about.
      expect(read).toBeGreaterThan(0);
      expect(published).toBeGreaterThan(0);
    },
  );
}
