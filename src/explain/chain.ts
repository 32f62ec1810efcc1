/** The way from a claim to another one for which it waits, and the explanation of its end. */
import type { Explanation, Walked } from './explanation.ts';

/** Claims on a way: more are no help to anybody, and each costs requests. */
const maxClaims = 4;

export interface ClaimName {
  namespace: string;
  name: string;
}

/**
 * Explains the claim at the end of the way, and joins both: verdict, cause and cure are those of the end.
 *
 * @param explain - explains a claim with all that follows from it.
 * @param seen - the claims that are on the way already, as `NAMESPACE/NAME`.
 */
export async function followed(
  { next = [], ...own }: Walked,
  explain: (claim: ClaimName, seen: ReadonlySet<string>) => Promise<Explanation>,
  seen: ReadonlySet<string>,
): Promise<Explanation> {
  for (const { namespace, name, way } of next) {
    const key = `${namespace}/${name}`;
    if (seen.has(key) || seen.size >= maxClaims) continue;
    const end = await explain({ namespace, name }, new Set([...seen, key]));
    if (!holdsNobody(end) && end.message !== own.message) return joined(own, end, way);
  }
  return own;
}

/** A claim that is bound, and of which nothing is to be said. */
function holdsNobody({ verdict, cure }: Explanation): boolean {
  return verdict === 'bound' && cure === '';
}

function joined(own: Explanation, end: Explanation, way: string): Explanation {
  const state = end.verdict === 'bound' || end.cause === 'not-found' ? 'stuck' : end.verdict;
  return {
    object: own.object,
    verdict: state,
    cause: end.verdict === 'bound' ? own.cause : end.cause,
    message: end.message.startsWith('It waits for ')
      ? `${way}, which ${end.message.slice('It '.length)}`
      : `${way}: ${end.message.replace(/^The claim /, 'this claim ')}`,
    cure: end.cure,
    steps: [...own.steps, { step: `claim ${end.object}`, state, detail: end.message }],
  };
}
