import { execFileSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { tempDir } from "./temp-dir.ts";

/** A disk of so many bytes, where this user may mount one. */
export function smallDisk(bytes: number): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  const dir = tempDir();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=700`, "tmpfs", dir], { stdio: "ignore" });
  } catch {
    return undefined; // Root without the right to mount, as in a container.
  }
  // Before the directory is removed: what is registered last runs first.
  onTestFinished(() => void execFileSync("umount", ["-l", dir]));
  return dir;
}
