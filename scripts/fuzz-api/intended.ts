import { quantityNanos } from '../../sandbox/api/quantity.ts';
import type { Json } from '../../test/support/api-verdicts/kinds.ts';
import { type Difference, fieldsApart } from './differences.ts';

/** Differences that stay, each with the reason. docs/sandbox.md has the same list. */
export const intended: readonly { readonly reason: string; readonly fits: (difference: Difference) => boolean }[] = [
  {
    reason:
      'A volume of more than 2^63-1 bytes: the number overflows in Kubernetes, which refuses one half of such ' +
      'capacities; the sandbox takes all of them as 2^63-1.',
    fits: (difference) =>
      difference.write.kind === 'PersistentVolume' &&
      fieldsApart(difference) === 'spec.capacity[key]' &&
      capacities(difference.write.object).some((amount) => (quantityNanos(amount) ?? 0n) >= mostNanos),
  },
];

const mostNanos = (2n ** 63n - 1n) * 1_000_000_000n;

function capacities(object: Json): unknown[] {
  const { spec } = object as { spec?: { capacity?: Json } };
  return Object.values(spec?.capacity ?? {});
}
