/** All findings, in the order in which they are reported. */
import { capacityFlag } from './capacity-flag.ts';
import { classDriver } from './class-driver.ts';
import { conditionalRights } from './conditional-rights.ts';
import { cpuLimit } from './cpu-limit.ts';
import { everyNode } from './every-node.ts';
import type { FindingDefinition } from './preflight-finding.ts';
import { flagEffects } from './flag-effects.ts';
import { foreignArchitecture } from './foreign-architecture.ts';
import { foreignCommand } from './foreign-command.ts';
import { foreignSeccompProfile } from './foreign-seccomp-profile.ts';
import { imageUser } from './image-user.ts';
import { journalWriters } from './journal-writers.ts';
import { longTimeout } from './long-timeout.ts';
import { memoryLimit } from './memory-limit.ts';
import { missingProgram } from './missing-program.ts';
import { missingRights } from './missing-rights.ts';
import { olderRelease } from './older-release.ts';
import { sameDriver } from './same-driver.ts';
import { severalProvisioners } from './several-provisioners.ts';
import { sharedHostName } from './shared-host-name.ts';
import { sharedToken } from './shared-token.ts';
import { shortGracePeriod } from './short-grace-period.ts';
import { twoAtOnce } from './two-at-once.ts';
import { unknownRights } from './unknown-rights.ts';
import { unprotectedJournal } from './unprotected-journal.ts';
import { unreadableArguments } from './unreadable-arguments.ts';
import { unservedProbe } from './unserved-probe.ts';

export const definitions: readonly FindingDefinition[] = [
  foreignCommand,
  unreadableArguments,
  missingProgram,
  imageUser,
  foreignArchitecture,
  missingRights,
  unknownRights,
  unprotectedJournal,
  conditionalRights,
  memoryLimit,
  cpuLimit,
  twoAtOnce,
  sharedHostName,
  everyNode,
  capacityFlag,
  sameDriver,
  classDriver,
  severalProvisioners,
  unservedProbe,
  olderRelease,
  longTimeout,
  shortGracePeriod,
  flagEffects,
  foreignSeccompProfile,
  sharedToken,
  journalWriters,
];
