/** Why a volume stays: the steps of its deletion in their order. */
import { type PersistentVolume, persistentVolumes } from '../provision/objects.ts';
import type { ClusterReader } from './cluster-reader.ts';
import { type Explanation, type Finding, type Look, walk } from './explanation.ts';
import { readVolumeFacts, type VolumeFacts } from './volume-facts-reader.ts';
import { lookAtAttachments, lookAtDeleter, lookAtDeletion, lookAtVolumeState } from './volume-steps.ts';

const steps: readonly Look<VolumeFacts>[] = [
  { step: 'volume', look: lookAtVolumeState },
  { step: 'attachments', look: lookAtAttachments },
  { step: 'provisioner', look: lookAtDeleter },
  { step: 'deletion', look: lookAtDeletion },
];

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
  const unread = (): Finding =>
    volume.kind === 'unreadable'
      ? { state: 'unknown', detail: volume.why }
      : {
          state: 'unknown',
          cause: 'not-found',
          message: `There is no PersistentVolume ${name}.`,
          cure: 'List the volumes: kubectl get pv',
        };
  return walk(`pv/${name}`, volume, [{ step: 'volume', look: unread }]);
}
