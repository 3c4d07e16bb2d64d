import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { knownBytes } from "./support/known-bytes.ts";
import { otherDisk, tempDir } from "./support/temp-dir.ts";

// More in a long run: LONGJOBS_TRANSFER_MIB=1024.
const mebibytes = Number(process.env["LONGJOBS_TRANSFER_MIB"] ?? 128);

const program = fileURLToPath(new URL("support/memory-child.ts", import.meta.url));

interface Told {
  readonly idleBytes: number;
  readonly peakBytes: number;
  readonly readBytes: number;
  readonly sha256: string;
  readonly digest: string;
}

for (const disk of ["same disk", ...(otherDisk === undefined ? [] : ["other disk"])]) {
  test(
    `a large file is staged, published, hashed and streamed in at most 96 MiB over the idle process (P68, ${disk})`,
    { timeout: 600_000 },
    async () => {
      const root = join(disk === "same disk" ? tempDir() : tempDir(otherDisk), "root");
      const given = [join(tempDir(), "staging"), root, String(mebibytes)];
      const child = fork(program, given, { stdio: "inherit", execArgv: [] });
      onTestFinished(() => void child.kill("SIGKILL"));
      const told = await new Promise<Told>((resolve, reject) => {
        child.once("message", (message) => resolve(message as Told));
        child.once("exit", (code) => reject(new Error(`The child ended with ${code}.`)));
      });
      const hash = createHash("sha256");
      for (let sent = 0; sent < mebibytes; sent += 1) hash.update(knownBytes(0, 1024 * 1024));
      const expected = hash.digest("hex");
      expect(told).toMatchObject({ readBytes: mebibytes * 1024 * 1024, sha256: expected, digest: expected });
      const extraBytes = told.peakBytes - told.idleBytes;
      console.log(`${mebibytes} MiB, ${disk}: ${Math.round(extraBytes / 2 ** 20)} MiB over the idle process`);
      expect(extraBytes).toBeLessThan(96 * 1024 * 1024);
    },
  );
}
