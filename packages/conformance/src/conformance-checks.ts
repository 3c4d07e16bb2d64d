import type { Check } from "./check.ts";
import { claimChecks } from "./checks/claim.ts";
import { claimRaceChecks, sharedClaimRaceChecks } from "./checks/claim-race.ts";
import { claimableChecks } from "./checks/claimable.ts";
import { closeChecks } from "./checks/close.ts";
import { createChecks } from "./checks/create.ts";
import { durableChecks } from "./checks/durable.ts";
import { durableLeaseChecks } from "./checks/durable-leases.ts";
import { faultChecks } from "./checks/fault.ts";
import { getChecks } from "./checks/get.ts";
import { raceChecks, sharedRaceChecks } from "./checks/race.ts";
import { renewChecks } from "./checks/renew.ts";
import { sweepChecks } from "./checks/sweep.ts";
import { timeChecks } from "./checks/time.ts";
import { updateChecks } from "./checks/update.ts";
import { valueChecks } from "./checks/values.ts";
import { watchChecks } from "./checks/watch.ts";
import { afterCloseChecks } from "./traits/after-close.ts";
import { expiredIdChecks } from "./traits/expired-id.ts";
import { twoHandleChecks } from "./traits/two-handles.ts";
import { unknownIdChecks } from "./traits/unknown-id.ts";

/** Every check of the suite, in the order in which they run: the plain promises first. */
export const conformanceChecks: readonly Check[] = [
  ...createChecks,
  ...getChecks,
  ...updateChecks,
  ...unknownIdChecks,
  ...valueChecks,
  ...timeChecks,
  ...expiredIdChecks,
  ...sweepChecks,
  ...closeChecks,
  ...afterCloseChecks,
  ...raceChecks,
  ...faultChecks,
  ...durableChecks,
  ...twoHandleChecks,
  ...sharedRaceChecks,
  ...watchChecks,
  ...claimableChecks,
  ...claimChecks,
  ...renewChecks,
  ...claimRaceChecks,
  ...durableLeaseChecks,
  ...sharedClaimRaceChecks,
];
