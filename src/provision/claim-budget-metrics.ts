import { gauge, type MetricRegistry } from '../base/metrics.ts';
import type { ClaimBudget } from './claim-budget.ts';

/** Registers what a budget counts. @throws {Error} when the registry has it already. */
export function claimBudgetMetrics(registry: MetricRegistry, budget: ClaimBudget): void {
  gauge({
    registry,
    labels: ['namespace'],
    name: 'claim_cache_bytes',
    help: 'Size of the claims without a volume that the cache keeps whole, of the three namespaces with the most, and of all others as ""',
    collect: (bytes) => {
      bytes.reset();
      let rest = budget.storedChars;
      for (const [namespace, chars] of budget.top()) {
        bytes.set({ namespace }, chars);
        rest -= chars;
      }
      bytes.set({ namespace: '' }, rest);
    },
  });
}
