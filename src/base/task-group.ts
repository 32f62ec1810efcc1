/** Long-running tasks of which one failure ends all. */
export class TaskGroup {
  /** Aborts with the first failure, with `abort`, and when one of the parents does: every task is expected to end then. */
  readonly signal: AbortSignal;
  readonly #ending = new AbortController();
  readonly #tasks = new Set<Promise<void>>();
  #failure: { error: unknown } | undefined;

  /** @param parents - signals that end the group from outside. */
  constructor(...parents: readonly AbortSignal[]) {
    this.signal = AbortSignal.any([...parents, this.#ending.signal]);
  }

  /**
   * Starts a task, also while others run. It may end by itself at any time. A rejection with the reason of `signal` is
   * an end; any other is a failure, which ends the whole group.
   *
   * @param task - called at once, with the group's signal.
   */
  start(task: (signal: AbortSignal) => Promise<unknown>): void {
    const running = this.#run(task).finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Ends the group from within: every task is expected to end, and none has failed. Safe to repeat. */
  abort(reason: Error): void {
    this.#ending.abort(reason);
  }

  /**
   * Resolves when every task has ended, those included that were started meanwhile. Safe to repeat.
   *
   * @throws the first failure; later ones are consequences of it and are dropped.
   */
  async ended(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Never rejects. */
  async #run(task: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    try {
      await task(this.signal);
    } catch (error) {
      if (this.signal.aborted && error === this.signal.reason) return;
      this.#failure ??= { error };
      this.#ending.abort(error);
    }
  }
}
