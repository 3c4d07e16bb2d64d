import { defineProject, type UserWorkspaceConfig } from "vitest/config";

export function project(name: string): UserWorkspaceConfig {
  return defineProject({
    test: {
      name,
      include: ["test/**/*.test.ts"],
      testTimeout: 30_000,
      hookTimeout: 30_000,
    },
  });
}
