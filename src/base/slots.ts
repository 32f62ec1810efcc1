/** Bounds how many of the tasks that wait for a slot go on at the same time. */
export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** @param count - at least 1. */
  constructor(count: number) {
    this.#free = count;
  }

  /** Resolves once there is a free slot, which the caller has then. In the order of the calls. */
  async take(): Promise<void> {
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Gives a slot back. */
  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }

  /** Lets others use the caller's slot while it waits for something else. */
  async without<T>(wait: () => Promise<T>): Promise<T> {
    this.give();
    try {
      return await wait();
    } finally {
      await this.take();
    }
  }
}
