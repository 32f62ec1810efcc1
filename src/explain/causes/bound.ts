/** The claim has its volume. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const bound = defineCause({ name: 'bound' });

export function checkBound({ claim }: ClaimFacts): Finding | undefined {
  if (claim.status?.phase !== 'Bound') return undefined;
  const { volumeName = '' } = claim.spec;
  return { state: 'ok', cause: 'bound', message: `The claim is bound to PersistentVolume ${volumeName}.` };
}
