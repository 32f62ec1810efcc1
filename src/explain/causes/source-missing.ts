/** The data source of the claim does not exist. */
import { shortValue } from '../../base/short-value.ts';
import type { ClaimFacts, SourceReference } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure = 'Create the source, or recreate the claim with another one';

export const sourceMissing = defineCause({
  name: 'source-missing',
  failures: [
    {
      pattern: /error getting (PVC|snapshot|snapshotcontent) |^the PVC source (not found for PVC|does not belong) /,
      cure,
    },
  ],
});

export function checkSourceExists({ source, sourceClaim, snapshot }: ClaimFacts): Finding | undefined {
  const reading = sourceClaim ?? snapshot;
  if (source === undefined || reading === undefined) return undefined;
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'found') return undefined;
  return {
    state: 'stuck',
    cause: 'source-missing',
    message: reading.unserved
      ? `The data source of the claim is ${sourceName(source)}, and the cluster does not have this kind.`
      : `${sourceName(source)}, the data source of the claim, does not exist.`,
    cure: reading.unserved ? 'Install the CRDs of external-snapshotter and its controller' : cure,
  };
}

export function sourceName({ kind, namespace, name }: SourceReference): string {
  return `${shortValue(kind)} ${namespace}/${shortValue(name)}`;
}
