/** The claim names a StorageClass that does not exist. */
import { className } from '../../provision/claim/claim-fields.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure = 'Create the class, or recreate the claim with another class';

export const classNotFound = defineCause({
  name: 'class-not-found',
  failures: [{ pattern: /^storageClass ".*" not found$/, cure }], // in the log, while the event is not repeated
  waits: [{ pattern: /^Waiting for StorageClass /, state: 'stuck', cure }],
});

export function checkClassExists({ claim, storageClass }: ClaimFacts): Finding | undefined {
  if (storageClass?.kind === 'unreadable') return { state: 'unknown', detail: storageClass.why };
  if (found(storageClass) !== undefined) return undefined;
  return {
    state: 'stuck',
    cause: 'class-not-found',
    message: `StorageClass ${className(claim)} does not exist.`,
    cure,
  };
}
