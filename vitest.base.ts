import { defineProject, type UserWorkspaceConfig } from "vitest/config";

/** Most of what takes long waits for processes, disks and servers: more workers than processors wait side by side. */
export const maxWorkers = 3;

export function project(name: string): UserWorkspaceConfig {
  return defineProject({
    test: {
      name,
      maxWorkers,
      include: ["test/**/*.test.ts"],
      testTimeout: 30_000,
      hookTimeout: 30_000,
      // A deadline, not a measure: a machine may be busy with other things for a second.
      expect: { poll: { timeout: 10_000 } },
    },
  });
}
