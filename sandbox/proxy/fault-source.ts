import { readFileSync, statSync } from 'node:fs';
import { type CallFault, CallFaultError, type FaultAction, parseFaults } from './call-fault.ts';

/** The faults of a command line, and those of a file that may change at any time. */
export class FaultSource {
  readonly #given: readonly CallFault[];
  readonly #file: string | undefined;
  /** State of the file when it was read last. */
  #read = '';
  #faults: readonly CallFault[] = [];

  constructor({ faults, file }: { faults: readonly CallFault[]; file?: string | undefined }) {
    this.#given = faults;
    this.#file = file;
  }

  /**
   * Takes the first fault that applies to a call, those of the file first, and counts it.
   *
   * @throws {CallFaultError} while the file cannot be understood: nobody should rely on a fault that is not injected.
   */
  take(method: string): FaultAction | undefined {
    for (const fault of [...this.#fromFile(), ...this.#given]) {
      if (fault.left <= 0 || (fault.method !== '*' && fault.method !== method)) continue;
      fault.left--;
      if (fault.action.kind !== 'kill' || fault.left === 0) return fault.action;
    }
    return undefined;
  }

  /** Counts anew when the file has changed. Without the file there are none. */
  #fromFile(): readonly CallFault[] {
    if (this.#file === undefined) return [];
    const stats = statSync(this.#file, { throwIfNoEntry: false, bigint: true });
    const state = stats === undefined ? '' : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
    if (state === this.#read) return this.#faults;
    try {
      this.#faults = stats === undefined ? [] : parseFaults(readFileSync(this.#file, 'utf8'));
    } catch (error) {
      throw new CallFaultError(`${this.#file}: ${(error as Error).message}`, { cause: error });
    }
    this.#read = state;
    return this.#faults;
  }
}
