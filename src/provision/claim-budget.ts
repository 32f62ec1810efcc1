import type { PersistentVolumeClaim } from './objects.ts';

/**
 * What claims without a volume may take that are kept whole, in characters: their keys and values, and `perClaim` for each. The
 * heap of a container with 512 MiB has room for it several times, also while a list replaces the whole content.
 */
const defaultMaxChars = 32 * 1024 * 1024;
/** An object of many small ones takes this besides its characters. */
const perClaim = 512;
/** So many namespaces are named by `top`. */
const maxTop = 3;

/**
 * Counts what claims that are kept whole take. What is in the cache is counted exactly, by its changes; a form that was made
 * for the cache counts from then on, and no longer once it is in it or, where it never gets there, has been collected.
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

  /** The namespaces whose claims take most, the largest first. */
  top(): readonly (readonly [namespace: string, chars: number])[] {
    return [...this.#byNamespace].toSorted(([, one], [, other]) => other - one).slice(0, maxTop);
  }

  /** Whether a claim with so many characters may be kept whole; it counts from now on. */
  take(claim: PersistentVolumeClaim, chars: number): boolean {
    const size = chars + perClaim;
    if (this.#storedChars + this.#pendingChars + size > this.#maxChars) return false;
    this.#sizes.set(claim, size);
    this.#pending.add(claim);
    this.#pendingChars += size;
    this.#collected.register(claim, size, claim);
    return true;
  }

  /** The cache has another object under a key: to be called for each change of its content. */
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
