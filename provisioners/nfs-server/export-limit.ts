/** How many volumes may exist, and who waits until one of them is gone. */

/** A volume in progress that counts already. To be disposed when it is made, or is not. */
export type ExportSlot = Disposable;

export interface ExportLimitOptions {
  /** Volumes that may exist in all; undefined: no limit. */
  max: number | undefined;
  /** Volumes that exist. */
  count: () => number;
  /** Has a claim tried again, by its UID. */
  wake: (claimUid: string) => void;
}

/** A limit that was reached: of all volumes, or of those of a class. */
export interface ReachedLimit {
  readonly max: number;
  readonly className?: string;
}

/** The limit of the whole provisioner, and those of classes. */
export class ExportLimit {
  readonly #options: ExportLimitOptions;
  /** Volumes in progress, by class. */
  readonly #making = new Map<string, number>();
  /** UIDs of claims that were refused, the one that waits longest first. */
  readonly #waiting = new Set<string>();

  constructor(options: ExportLimitOptions) {
    this.#options = options;
  }

  /** The limit of all; 0 where there is none. */
  get max(): number {
    return this.#options.max ?? 0;
  }

  /** Whether there is room for one more volume; a claim for which there is none is woken once there is. */
  admits(claimUid: string): boolean {
    if (this.#hasRoom()) return true;
    this.#waiting.add(claimUid);
    return false;
  }

  /**
   * Takes the place of a volume that is to be made.
   *
   * @param options.ofClass - the limit of its class, and the volumes of it that exist.
   * @returns undefined when there is none, with the limit that was reached, and the class if it is its limit; the claim is
   * then woken once there is.
   */
  reserve(
    claimUid: string,
    className: string,
    ofClass?: { max: number; count: number },
  ): { slot: ExportSlot } | { slot: undefined; limit: ReachedLimit } {
    const making = this.#making.get(className) ?? 0;
    if (!this.admits(claimUid)) return { slot: undefined, limit: { max: this.max } };
    if (ofClass !== undefined && ofClass.count + making >= ofClass.max) {
      this.#waiting.add(claimUid);
      return { slot: undefined, limit: { max: ofClass.max, className } };
    }
    this.#waiting.delete(claimUid);
    this.#making.set(className, making + 1);
    return { slot: { [Symbol.dispose]: () => this.#end(className) } };
  }

  #end(className: string): void {
    const left = (this.#making.get(className) ?? 1) - 1;
    if (left > 0) this.#making.set(className, left);
    else this.#making.delete(className);
    if (this.#hasRoom()) this.freed(); // it may have come to nothing, or have been counted twice for a moment
  }

  #hasRoom(): boolean {
    const { max, count } = this.#options;
    const making = [...this.#making.values()].reduce((sum, each) => sum + each, 0);
    return max === undefined || count() + making < max;
  }

  /** There is room again: all claims that wait are synced, as only the class of each can tell whether there is room for it. */
  freed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const uid of waiting) this.#options.wake(uid);
  }

  /** The claim is gone, or has its volume. */
  forget(claimUid: string): void {
    this.#waiting.delete(claimUid);
  }
}
