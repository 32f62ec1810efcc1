/** Why a volume stays: the steps of its deletion in their order. */
import { type PersistentVolume, persistentVolumes } from '../provision/objects.ts';
import type { ClusterReader } from './cluster-reader.ts';
import { volumeNotRead } from './causes/claim.ts';
import {
  checkAttachments,
  checkDeleter,
  checkDeletion,
  checkDeletionBegins,
  checkFailedForGood,
  checkInUse,
  checkOtherSource,
  checkRetained,
  checkUnattempted,
  checkVolumeDeleted,
} from './causes/deletion.ts';
import { type CheckedStep, type Explanation, type Finding, walk } from './explanation.ts';
import { isToBeDeleted, readVolumeFacts, type VolumeFacts } from './volume-facts-reader.ts';

const steps: readonly CheckedStep<VolumeFacts>[] = [
  { step: 'volume', checks: [checkInUse, checkRetained, volumeState] },
  { step: 'attachments', checks: [checkAttachments] },
  { step: 'provisioner', checks: [checkOtherSource, checkDeleter] },
  {
    step: 'deletion',
    checks: [checkFailedForGood, checkDeletion, checkDeletionBegins, checkUnattempted, checkVolumeDeleted],
  },
];

function volumeState({ volume }: VolumeFacts): Finding {
  const phase = volume.status?.phase ?? 'Pending';
  const what = isToBeDeleted(volume) ? 'its reclaim policy is Delete' : 'is being deleted';
  return { state: 'ok', detail: `it is ${phase}, and ${what}` };
}

/** Checks the steps of a volume against what was read. Pure. */
export function volumeExplanation(facts: VolumeFacts): Explanation {
  return walk(`pv/${facts.volume.metadata.name}`, facts, steps);
}

/**
 * Explains a volume. Read-only, with at most eight requests, and one for each further 2,000 VolumeAttachments of the cluster.
 *
 * @throws the reason of the reader's signal, and nothing else: what cannot be read is part of the explanation.
 */
export async function explainVolume(
  name: string,
  options: { reader: ClusterReader; now: () => number },
): Promise<Explanation> {
  const volume = await options.reader.get<PersistentVolume>(persistentVolumes, { name });
  if (volume.kind === 'found') return volumeExplanation(await readVolumeFacts(volume.value, options));
  return walk(`pv/${name}`, volume, [{ step: 'volume', checks: [volumeNotRead(name)] }]);
}
