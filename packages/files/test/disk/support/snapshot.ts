import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "./bytes.ts";

/** Everything that can be told about a directory from outside, by path. */
export function snapshot(dir: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const path of ["", ...readdirSync(dir, { recursive: true, encoding: "utf8" })].toSorted()) {
    const full = join(dir, path);
    const stats = lstatSync(full, { bigint: true });
    const content = stats.isFile()
      ? sha256(readFileSync(full))
      : stats.isSymbolicLink()
        ? readlinkSync(full)
        : "";
    found[path] = [stats.mode, stats.ino, stats.nlink, stats.mtimeNs, stats.ctimeNs, content].join(" ");
  }
  return found;
}

/** How many files this process has open, where the system tells. */
export function openFiles(): number | undefined {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : undefined;
}
