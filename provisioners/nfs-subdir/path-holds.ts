/** What is under way in which directory: nothing is made in one that is being removed, nor removed while it is made. */
import { relation, type VolumePath } from './volume-path.ts';

/** The directory, or one above or below it, is being removed or archived. */
export class BusyPathError extends Error {
  override readonly name = 'BusyPathError';
}

interface Hold {
  path: VolumePath;
  doing: 'making' | 'removing';
  released: PromiseWithResolvers<void>;
}

export class PathHolds {
  readonly #holds = new Set<Hold>();

  /**
   * Holds a path while its directory is made.
   *
   * @throws {BusyPathError} while it, or one above or below it, is removed: that can take hours, and a claim is tried again.
   */
  making(path: VolumePath): Disposable {
    const other = this.#overlapping(path).find(({ doing }) => doing === 'removing');
    if (other !== undefined) throw new BusyPathError(`the directory ${other.path.join('/')} is being removed`);
    return this.#hold(path, 'making');
  }

  /** Holds a path while its directory is removed or archived, once nothing is under way there. @throws the signal's reason. */
  async removing(path: VolumePath, signal: AbortSignal): Promise<Disposable> {
    for (let [other] = this.#overlapping(path); other !== undefined; [other] = this.#overlapping(path)) {
      await unlessAborted(other.released.promise, signal);
    }
    return this.#hold(path, 'removing');
  }

  #overlapping(path: VolumePath): Hold[] {
    return [...this.#holds].filter((hold) => relation(path, hold.path) !== 'apart');
  }

  #hold(path: VolumePath, doing: Hold['doing']): Disposable {
    const hold: Hold = { path, doing, released: Promise.withResolvers() };
    this.#holds.add(hold);
    return {
      [Symbol.dispose]: () => {
        this.#holds.delete(hold);
        hold.released.resolve();
      },
    };
  }
}

async function unlessAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason as Error);
  signal.addEventListener('abort', onAbort);
  try {
    await Promise.race([waited, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
