import type { UserConfig } from "tsdown";

export const base: UserConfig = {
  entry: ["src/index.ts"],
  format: "esm",
  fixedExtension: false,
  dts: true,
  platform: "neutral",
  deps: { neverBundle: [/^node:/] },
  target: "es2023",
};
