/** What the claim needs is off in the provisioner. */
import { attempts, type FailedAttempt } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { defineCause } from './cause.ts';

const text = 'CrossNamespaceVolumeDataSource feature is disabled';

export const featureDisabled = defineCause({
  name: 'feature-disabled',
  failures: [
    {
      pattern: new RegExp(text),
      cure: 'Start the provisioner with --feature-gates=CrossNamespaceVolumeDataSource=true; a ReferenceGrant alone changes nothing. Or recreate the claim with a source of its own namespace',
    },
  ],
});

/** Comes before the grant that would be missing as well. */
export function checkFeatureEnabled(facts: ClaimFacts): FailedAttempt | undefined {
  const { failed } = attempts(facts);
  return failed?.text.includes(text) === true ? { failed } : undefined;
}
