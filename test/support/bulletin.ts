import { patienceMs } from './patience.ts';

/** Not everything is reported, such as the length of a queue; in milliseconds. */
const lookEveryMs = 20;

/** Lets a test wait for a condition: it is looked at anew whenever something is reported to have happened. */
export class Bulletin {
  readonly #checks = new Set<() => void>();

  /** Something happened; what follows from it in the same turn of the event loop is seen, too. */
  readonly notify = (): void => {
    this.#look();
    setImmediate(() => this.#look());
  };

  /** Resolves with what `read` finds. @throws {Error} when it finds nothing within the patience of all tests. */
  until<T>(what: string, read: () => T | undefined | false): Promise<T> {
    return new Promise((resolve, reject) => {
      const check = (): void => {
        try {
          const found = read();
          if (found !== undefined && found !== false) end(() => resolve(found));
        } catch (error) {
          end(() => reject(error instanceof Error ? error : new Error(String(error))));
        }
      };
      const end = (settle: () => void): void => {
        this.#checks.delete(check);
        clearTimeout(timer);
        clearInterval(looking);
        settle();
      };
      const timer = setTimeout(() => end(() => reject(new Error(`waited in vain for: ${what}`))), patienceMs);
      const looking = setInterval(check, lookEveryMs);
      this.#checks.add(check);
      check();
    });
  }

  #look(): void {
    for (const check of [...this.#checks]) check();
  }
}
