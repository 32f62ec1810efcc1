/** How long something may take that should happen at once, on a busy machine; in milliseconds. */
const patienceMs = 20_000;

/** Lets a test wait for a condition: it is looked at anew whenever something was reported to have happened. */
export class Bulletin {
  readonly #checks = new Set<() => void>();

  /** Something happened; what follows from it in the same turn of the event loop is seen, too. */
  readonly notify = (): void => {
    this.#look();
    setImmediate(() => this.#look());
  };

  /** Resolves with what `read` finds. @throws {Error} when it finds nothing for 20 seconds. */
  until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        try {
          const found = read();
          if (found !== undefined && found !== false) end(() => resolve(found));
        } catch (error) {
          end(() => reject(error as Error));
        }
      };
      const end = (settle: () => void): void => {
        this.#checks.delete(check);
        clearTimeout(timer);
        settle();
      };
      const timer = setTimeout(() => end(() => reject(new Error(`waited in vain for: ${what}`))), patienceMs);
      this.#checks.add(check);
      check();
    });
  }

  #look(): void {
    for (const check of [...this.#checks]) check();
  }
}
