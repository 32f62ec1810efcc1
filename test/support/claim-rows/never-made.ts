/** Claims and Pods that nobody has created: quota, admission, owners, and names that are nearly right. */
import type { Row } from './row.ts';

export const neverMade: readonly Row[] = [
  {
    title: 'a claim that nobody has created',
    arrange: () => Promise.resolve(),
    recorded: () => Promise.resolve(),
    verdict: 'unknown',
    cause: 'not-found',
    says: /^There is no claim \S+\/c\.$/,
    advises: /^List the claims: kubectl get pvc --namespace \S+$/,
    async cure(world) {
      await world.addClass();
      await world.addClaim();
    },
    ends: 'bound',
  },
];
