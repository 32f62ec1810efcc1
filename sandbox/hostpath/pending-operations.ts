import { CallError } from './call-error.ts';

/** At most one operation at a time on each volume, snapshot or name (CSI spec, "Error Scheme", `ABORTED`). */
export class PendingOperations {
  readonly #keys = new Set<string>();

  /**
   * Runs `operation` while it holds `key`.
   *
   * @throws {CallError} `ABORTED` when another operation holds it: the caller repeats later.
   */
  async run<T>(key: string, operation: () => Promise<T> | T): Promise<T> {
    if (this.#keys.has(key)) throw new CallError('ABORTED', `an operation is already pending for ${key}`);
    this.#keys.add(key);
    try {
      return await operation();
    } finally {
      this.#keys.delete(key);
    }
  }
}
