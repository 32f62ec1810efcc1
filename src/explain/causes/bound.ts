/** The claim has its volume. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { found } from '../cluster-reader.ts';
import { defineCause } from './cause.ts';

export const bound = defineCause({ name: 'bound' });

export function checkBound({ claim, volume, node }: ClaimFacts): Finding | undefined {
  if (claim.status?.phase !== 'Bound') return undefined;
  const { volumeName = '' } = claim.spec;
  const message = `The claim is bound to PersistentVolume ${volumeName}.`;
  const selected = found(node);
  if (selected === undefined || !excludes(found(volume), selected.metadata.labels)) {
    return { state: 'ok', cause: 'bound', message };
  }
  return {
    state: 'ok',
    cause: 'bound',
    message: `${message} The node that was selected for it, ${selected.metadata.name}, is not in the node affinity of the volume: no Pod can use it there.`,
    cure: 'Start the Pod on a node that the volume allows; if the class has allowedTopologies, name all topology keys of the driver in each term, and recreate the claim',
  };
}

/** By conditions as provisioners write them; of a volume in the form of an in-tree plugin the scheduler compares other labels. */
function excludes(volume: PersistentVolume | undefined, labels: Record<string, string> = {}): boolean {
  const terms = volume?.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  if (volume?.spec.csi === undefined || terms.length === 0) return false;
  return terms.every(({ matchExpressions = [] }) =>
    matchExpressions.some(
      ({ key, operator, values = [] }) => operator === 'In' && !values.some((value) => labels[key] === value),
    ),
  );
}
