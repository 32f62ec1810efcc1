/** No ReferenceGrant allows the data source, which is in another namespace (Gateway API, "ReferenceGrant"). */
import { shortValue } from '../../base/short-value.ts';
import { allowsSource } from '../../provision/reference-grant.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const grantMissing = defineCause({
  name: 'grant-missing',
  failures: [
    {
      pattern: /^accessing .* isn't allowed$/,
      cure: 'Create a ReferenceGrant in the namespace of the source',
    },
  ],
});

export function checkGrant({ claim, source, grants }: ClaimFacts): Finding | undefined {
  if (source === undefined || grants === undefined) return undefined;
  if (grants.kind === 'unreadable') return { state: 'unknown', detail: grants.why };
  const allowed = (found(grants) ?? []).some((grant) => allowsSource(grant, claim.metadata.namespace ?? '', source));
  if (allowed) return { state: 'ok', detail: `a ReferenceGrant in ${source.namespace} allows it` };
  return {
    state: 'stuck',
    cause: 'grant-missing',
    message: `No ReferenceGrant in namespace ${source.namespace} allows claims of ${claim.metadata.namespace ?? ''} to use ${shortValue(source.kind)} ${shortValue(source.name)} as their data source.`,
    cure: `Create a ReferenceGrant in ${source.namespace} from PersistentVolumeClaims of ${claim.metadata.namespace ?? ''} to this ${shortValue(source.kind)}`,
  };
}
