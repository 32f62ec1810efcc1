import { gauge, type MetricRegistry } from '../../base/metrics.ts';
import type { ClaimBudget } from './claim-budget.ts';

/** Registers the metric of a budget. @throws {Error} when the registry has it already. */
export function claimBudgetMetrics(registry: MetricRegistry, budget: ClaimBudget): void {
  gauge({
    registry,
    labels: ['namespace'],
    name: 'claim_cache_bytes',
    help: 'Bytes of the claims without a volume that are cached whole, for the three largest namespaces; "" stands for all others',
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
