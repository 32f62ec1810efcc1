import { gauge, type MetricRegistry } from '../../base/metrics.ts';
import type { PersistentVolumeClaim } from '../objects.ts';

/**
 * Max size of the claims without a volume that are kept whole, in characters: of their keys and values, plus `perClaim`
 * for each. The heap of a container with 512 MiB has room for several times as much, which it needs while a list
 * replaces all claims.
 */
const defaultMaxChars = 32 * 1024 * 1024;
/** The overhead of a claim in memory, in characters. */
const perClaim = 512;
/** Max namespaces that `top` returns. */
const maxTop = 3;

/**
 * Counts the size of claims that are kept whole. The content of the cache is counted exactly, from its changes. A form
 * that was created for the cache and is not in it yet counts as pending, until it is stored or, if it never is,
 * garbage-collected.
 */
export class ClaimBudget {
  readonly #maxChars: number;
  readonly #sizes = new WeakMap<PersistentVolumeClaim, number>();
  readonly #pending = new WeakSet<PersistentVolumeClaim>();
  readonly #collected = new FinalizationRegistry<number>((size) => (this.#pendingChars -= size));
  readonly #byNamespace = new Map<string, number>();
  #pendingChars = 0;
  #storedChars = 0;

  constructor({ maxChars = defaultMaxChars }: { maxChars?: number } = {}) {
    this.#maxChars = maxChars;
  }

  /** Characters of the claims in the cache that are kept whole. */
  get storedChars(): number {
    return this.#storedChars;
  }

  /** The namespaces with the largest total, the largest first. */
  top(): readonly (readonly [namespace: string, chars: number])[] {
    return [...this.#byNamespace].toSorted(([, one], [, other]) => other - one).slice(0, maxTop);
  }

  /** Whether a claim with that many characters may be kept whole; if so, it counts from now on. */
  take(claim: PersistentVolumeClaim, chars: number): boolean {
    const size = chars + perClaim;
    if (this.#storedChars + this.#pendingChars + size > this.#maxChars) return false;
    this.#sizes.set(claim, size);
    this.#pending.add(claim);
    this.#pendingChars += size;
    this.#collected.register(claim, size, claim);
    return true;
  }

  /** To be called for each change of the cache, with the old object under a key and the new one. */
  changed(old: PersistentVolumeClaim | undefined, claim: PersistentVolumeClaim | undefined): void {
    if (old === claim) return;
    if (old !== undefined) this.#count(old, -(this.#sizes.get(old) ?? 0));
    if (claim === undefined) return;
    const size = this.#sizes.get(claim) ?? 0;
    this.#count(claim, size);
    if (!this.#pending.delete(claim)) return;
    this.#pendingChars -= size;
    this.#collected.unregister(claim);
  }

  #count({ metadata: { namespace = '' } }: PersistentVolumeClaim, size: number): void {
    this.#storedChars += size;
    const chars = (this.#byNamespace.get(namespace) ?? 0) + size;
    if (chars === 0) this.#byNamespace.delete(namespace);
    else this.#byNamespace.set(namespace, chars);
  }
}

/** Creates a budget and registers its metric. @throws {Error} when the registry already has the metric. */
export function measuredClaimBudget(registry: MetricRegistry): ClaimBudget {
  const budget = new ClaimBudget();
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
  return budget;
}
