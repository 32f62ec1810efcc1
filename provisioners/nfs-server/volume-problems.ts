import type { PersistentVolume, Recorder } from '../../src/index.ts';

/** Problems of PersistentVolumes, by name. Each new problem is recorded as an event. */
export class VolumeProblems {
  readonly #options: { recorder: Recorder; reason: string; text: string };
  readonly #problems = new Map<string, string>();

  /**
   * @param options.reason - reason of the events.
   * @param options.text - beginning of the event texts; the cause follows.
   */
  constructor(options: { recorder: Recorder; reason: string; text: string }) {
    this.#options = options;
  }

  get count(): number {
    return this.#problems.size;
  }

  /** Names of the volumes that have a problem. */
  get names(): Iterable<string> {
    return this.#problems.keys();
  }

  /** The volume is gone. */
  forget(name: string): void {
    this.#problems.delete(name);
  }

  /**
   * @param problem - undefined: it is solved.
   * @returns whether the problem is a new one.
   */
  report({ metadata: { name, uid } }: PersistentVolume, problem: string | undefined): boolean {
    const { recorder, reason, text } = this.#options;
    const known = this.#problems.get(name);
    if (problem === undefined) this.#problems.delete(name);
    else this.#problems.set(name, problem);
    if (problem === undefined || problem === known) return false;
    const about = { apiVersion: 'v1', kind: 'PersistentVolume', name, ...(uid !== undefined && { uid }) };
    recorder.event(about, 'Warning', reason, `${text}: ${problem}`, { once: true });
    return true;
  }
}
