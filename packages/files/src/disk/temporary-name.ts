import { randomBytes } from "node:crypto";
import { foldName } from "./deny-patterns.ts";

const temporaryName = /^\.longjobs-[0-9a-f]{32}\.part$/;

/** A name for a copy that is not whole yet, beside its target. Nobody can foresee it. */
export function makeTemporaryName(): string {
  return `.longjobs-${randomBytes(16).toString("hex")}.part`;
}

/** True for such a name, however it is spelled: clients may not use it, and the sweep removes it. */
export function isTemporaryName(name: string): boolean {
  return temporaryName.test(foldName(name));
}
