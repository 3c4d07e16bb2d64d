import type { Mutant } from "../support/mutant.ts";
import { createMutants, getMutants, valueMutants } from "./create.ts";
import { durableMutants } from "./durable.ts";
import { raceMutants, sharedRaceMutants } from "./race.ts";
import { sharedMutants, watchMutants } from "./shared.ts";
import { expiredMutants, sweepMutants, timeMutants } from "./time.ts";
import { closeMutants, updateMutants } from "./update.ts";

/** Every deliberately wrong store. */
export const mutants: readonly Mutant[] = [
  ...createMutants,
  ...getMutants,
  ...updateMutants,
  ...valueMutants,
  ...timeMutants,
  ...expiredMutants,
  ...sweepMutants,
  ...closeMutants,
  ...raceMutants,
  ...durableMutants,
  ...sharedMutants,
  ...sharedRaceMutants,
  ...watchMutants,
];
