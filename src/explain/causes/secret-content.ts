/** The driver misses something in its Secret, which has a key of a similar name. */
import { editDistance } from '../../base/edit-distance.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import { defineCause } from './cause.ts';

export const secretContent = defineCause({ name: 'secret-content' });

/** Codes with which drivers refuse what a Secret contains. */
const refused =
  /code = (InvalidArgument|Unauthenticated|PermissionDenied|FailedPrecondition|Internal|Unknown|NotFound) /;

/** What a writer has set (Kubernetes page "Server-Side Apply", "Field management"). */
interface WrittenFields {
  fieldsV1?: Record<string, object | undefined>;
}

/** Shorter names are similar by accident. */
const minLength = 4;

/** The names of the keys in the Secret of the claim: the managed fields name them, so no value is read. */
export function secretKeys({ secret }: ClaimFacts): string[] {
  const keys = new Set<string>();
  for (const { fieldsV1 } of (found(secret?.reading)?.metadata.managedFields ?? []) as WrittenFields[]) {
    for (const part of ['f:data', 'f:stringData']) {
      for (const field of Object.keys(fieldsV1?.[part] ?? {})) if (field.startsWith('f:')) keys.add(field.slice(2));
    }
  }
  return [...keys].sort();
}

/** What to do about an error of the driver that may be due to its Secret; undefined: it has none, or is not. */
export function secretCure(
  text: string,
  facts: ClaimFacts,
): { cause: 'secret-content' | 'driver-error'; cure: string } | undefined {
  const keys = secretKeys(facts);
  if (keys.length === 0 || !refused.test(text) || facts.secret === undefined) return undefined;
  const { namespace, name } = facts.secret.reference;
  const words = text.match(/[A-Za-z0-9_.-]+/g) ?? [];
  for (const key of keys) {
    const meant = words.find((word) => isMisspelt(key, word.replace(/\.$/, '')));
    if (meant === undefined || keys.includes(meant)) continue;
    return {
      cause: 'secret-content',
      cure: `Secret ${namespace}/${name} has the key ${key}: if the driver needs ${meant}, rename that key`,
    };
  }
  if (!/secret|credential|key|token|password|user/i.test(text)) return undefined;
  return {
    cause: 'driver-error',
    cure: `Compare the keys of Secret ${namespace}/${name} (${keys.slice(0, 10).join(', ')}) with the documentation of the driver, and see the log of its controller`,
  };
}

/** Whether two names differ by letter case, separators, or one or two letters. */
function isMisspelt(key: string, word: string): boolean {
  if (key === word || key.length < minLength || word.length < minLength) return false;
  const [a, b] = [key, word].map((each) => each.toLowerCase().replaceAll(/[_.-]/g, '')) as [string, string];
  if (`${a}s` === b || `${b}s` === a) return false; // a plural in a sentence
  return (
    a === b ||
    (Math.min(a.length, b.length) > minLength && editDistance(a, b, { swaps: true }) <= (a.length > 7 ? 2 : 1))
  );
}
