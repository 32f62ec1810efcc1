/** What is wrong, or undefined while all is well. Must not wait. */
export type HealthCheck = () => string | undefined;

/** The checks behind one health path. */
export class Health {
  readonly #checks = new Set<HealthCheck>();

  /** Adds a check until the returned function is called. */
  add(check: HealthCheck): () => void {
    this.#checks.add(check);
    return () => this.#checks.delete(check);
  }

  /** What all failing checks report, in one line; undefined while all pass. */
  get unhealthyReason(): string | undefined {
    const reasons = [...this.#checks].map((check) => check()).filter((text) => text !== undefined);
    return reasons.length === 0 ? undefined : reasons.join('; ');
  }
}
