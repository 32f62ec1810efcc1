/** No volume is provisioned for a claim with a selector: it can only be bound to an existing volume. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure = 'Recreate the claim without spec.selector, or create a PersistentVolume that fits it';

export const selector = defineCause({
  name: 'selector',
  failures: [{ pattern: /^claim Selector is not supported/, cure }],
});

export function checkSelector({ claim }: ClaimFacts): Finding | undefined {
  if (claim.spec.selector === undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'selector',
    message:
      'The claim has a selector, which matches existing volumes only. None of them fits, and no volume is provisioned for such a claim.',
    cure,
  };
}
