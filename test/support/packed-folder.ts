import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");

/**
 * An empty folder as a user has it, with packages of ours installed from their tarballs.
 *
 * @param names - The folders of our packages, such as `core`.
 * @param others - What else npm installs, such as `zod@4.0.0`.
 */
export async function createPackedFolder(
  names: readonly string[],
  others: readonly string[] = [],
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "longjobs-packed-"));
  const tarballs: string[] = [];
  for (const name of names) {
    await run("pnpm", ["pack", "--pack-destination", folder], { cwd: join(root, "packages", name) });
    tarballs.push(...globSync(`longjobs-${name}-*.tgz`, { cwd: folder }).map((file) => `./${file}`));
  }
  const manifest = { name: "consumer", private: true, type: "module" };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));
  await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", ...tarballs, ...others], {
    cwd: folder,
  });
  return folder;
}

/** Removes a folder that {@link createPackedFolder} made; one that was never made is no fault. */
export function removePackedFolder(folder: string): Promise<void> {
  return folder === "" ? Promise.resolve() : rm(folder, { recursive: true, force: true });
}
