/** What is wrong, or undefined while all is well. Must not wait. */
export type HealthCheck = () => string | undefined;

/** The checks behind one health path; whoever has something to check adds it. */
export class Health {
  readonly #checks = new Set<HealthCheck>();

  /** Adds a check until the returned function is called. */
  add(check: HealthCheck): () => void {
    this.#checks.add(check);
    return () => this.#checks.delete(check);
  }

  /** All that is wrong, in one line. */
  get complaint(): string | undefined {
    const complaints = [...this.#checks].map((check) => check()).filter((text) => text !== undefined);
    return complaints.length === 0 ? undefined : complaints.join('; ');
  }
}
