/** Why a volume stays: the steps of its deletion in their order. */
import { type PersistentVolume, persistentVolumes } from '../provision/objects.ts';
import { checkAttachments } from './causes/attached.ts';
import { volumeNotRead } from './causes/claim.ts';
import {
  checkDeleter,
  checkDeletion,
  checkDeletionBegins,
  checkFailedForGood,
  checkInUse,
  checkOtherSource,
  checkRecycled,
  checkRetained,
  checkUnattempted,
  checkVolumeDeleted,
} from './causes/volume-deletion.ts';
import { followed } from './chain.ts';
import type { ClaimReadOptions } from './claim-facts-reader.ts';
import { explainClaim } from './explain-claim.ts';
import { type CheckedStep, type Explanation, type Finding, type Walked, walk } from './explanation.ts';
import { isToBeDeleted, readVolumeFacts, type VolumeFacts } from './volume-facts-reader.ts';

const steps: readonly CheckedStep<VolumeFacts>[] = [
  { step: 'volume', checks: [checkInUse, checkRecycled, checkRetained, checkFailedForGood, volumeState] },
  { step: 'attachments', checks: [checkAttachments] },
  { step: 'provisioner', checks: [checkOtherSource, checkDeleter] },
  {
    step: 'deletion',
    checks: [checkDeletion, checkDeletionBegins, checkUnattempted, checkVolumeDeleted],
  },
];

function volumeState({ volume }: VolumeFacts): Finding {
  const phase = volume.status?.phase ?? 'Pending';
  const what = isToBeDeleted(volume) ? 'its reclaim policy is Delete' : 'is being deleted';
  return { state: 'ok', detail: `it is ${phase}, and ${what}` };
}

/** Checks the steps of a volume against what was read. Pure. */
function walkVolume(facts: VolumeFacts): Walked {
  return walk(`pv/${facts.volume.metadata.name}`, facts, steps);
}

/**
 * Explains a volume. Read-only, with at most twelve requests, and one for each further 2,000 VolumeAttachments of the cluster. Of one
 * that is being deleted together with its claim, the claim is explained.
 *
 * @throws the reason of the reader's signal, and nothing else: what cannot be read is part of the explanation.
 */
export async function explainVolume(name: string, options: ClaimReadOptions): Promise<Explanation> {
  const volume = await options.reader.get<PersistentVolume>(persistentVolumes, { name });
  if (volume.kind !== 'found') {
    return walk(`pv/${name}`, volume, [{ step: 'volume', checks: [volumeNotRead(name)] }]);
  }
  const walked = walkVolume(await readVolumeFacts(volume.value, options));
  return await followed(walked, (claim) => explainClaim(claim, options), new Set());
}
