/** Which processes have shown signs of life, by our own clock alone: those of machines differ. */
export class Heartbeats {
  readonly #seenAtMs = new Map<string, number>();
  readonly #renewals = new Map<string, number>();
  #own = 0;

  /** This process shows with its next write that it is alive. */
  beat(): void {
    this.#own++;
  }

  /** Another process has changed something, or is seen for the first time. */
  seen(writer: string, nowMs: number): void {
    this.#seenAtMs.set(writer, nowMs);
  }

  /** Records the counters that processes raise while they have open records. */
  observe(renewals: Readonly<Record<string, number>>, nowMs: number): void {
    for (const [writer, count] of Object.entries(renewals)) {
      if (this.#renewals.get(writer) === count) continue;
      this.#renewals.set(writer, count);
      this.seen(writer, nowMs);
    }
  }

  /** Nobody could be seen for a while: everybody counts as alive now. */
  restart(nowMs: number): void {
    for (const writer of this.#seenAtMs.keys()) this.#seenAtMs.set(writer, nowMs);
  }

  isSilent(writer: string, sinceMs: number): boolean {
    return (this.#seenAtMs.get(writer) ?? Infinity) <= sinceMs;
  }

  /** The counters to be written: that of this process, and those there were of others that have not been silent since then. */
  renewals(me: string, former: Readonly<Record<string, number>>, sinceMs: number): Record<string, number> {
    const { [me]: _own, ...others } = former;
    const kept = Object.entries(others).filter(([writer]) => !this.isSilent(writer, sinceMs));
    return { ...Object.fromEntries(kept), [me]: this.#own };
  }
}
