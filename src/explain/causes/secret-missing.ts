/** The driver needs a Secret that does not exist, or that the class names wrongly. */
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure = 'Create the Secret, or correct the secret parameters of the class (delete the class and create it again)';

export const secretMissing = defineCause({
  name: 'secret-missing',
  failures: [
    {
      pattern: /^error getting secret .* is forbidden: /s,
      cure: 'Permit the provisioner to get Secrets of that namespace: its log has the rule to add. Whether the Secret exists is not known',
    },
    { pattern: /^error getting secret .* not found/s, cure },
    {
      pattern: /^error resolving value /,
      cure: "Correct the template in the secret parameters of the class: delete it and create it again. It may contain ${pv.name}, ${pvc.namespace}, and in the name of the Secret also ${pvc.name} and ${pvc.annotations['KEY']}",
    },
    {
      pattern:
        /failed to get (default )?name and namespace template from params|is not a valid (secret|namespace) name/,
      cure: 'Correct the secret parameters of the class: delete it and create it again. Name and namespace of the Secret must both be given, and be valid',
    },
  ],
});

export function checkSecret({ secret }: ClaimFacts): Finding | undefined {
  if (secret === undefined) return undefined;
  const { reference, reading } = secret;
  const name = `${reference.namespace}/${reference.name}`;
  if (reading.kind === 'unreadable') return { state: 'unknown', detail: reading.why };
  if (reading.kind === 'found') return { state: 'ok', detail: `Secret ${name} exists` };
  return {
    state: 'stuck',
    cause: 'secret-missing',
    message: `Secret ${name}, which the StorageClass names for the driver, does not exist.`,
    cure,
  };
}
