import type { Mutant } from "../support/mutant.ts";
import { claimableMutants, claimMutants } from "./claim.ts";
import { createMutants, getMutants, valueMutants } from "./create.ts";
import { durableLeaseMutants, durableMutants } from "./durable.ts";
import { faultMutants } from "./fault.ts";
import { raceMutants, sharedRaceMutants } from "./race.ts";
import { renewMutants } from "./renew.ts";
import { sharedLeaseMutants, sharedMutants, watchMutants } from "./shared.ts";
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
  ...faultMutants,
  ...durableMutants,
  ...sharedMutants,
  ...sharedRaceMutants,
  ...watchMutants,
  ...claimableMutants,
  ...claimMutants,
  ...renewMutants,
  ...durableLeaseMutants,
  ...sharedLeaseMutants,
];
