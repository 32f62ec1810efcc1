import { setTimeout as delay } from 'node:timers/promises';
import { becomesReady, type Stage } from '../../test/support/stage.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';

/** What changes from one start of the sidecar to the next. */
export interface Life {
  prefix: string;
  /** Value of --volume-name-uuid-length. */
  uuidLength: number;
  /** Value of --intent-journal; undefined: not passed. */
  journal: string | undefined;
  /** Another sidecar, which knows no journal. */
  program?: string | undefined;
}

export const plainLife: Omit<Life, 'journal'> = { prefix: 'pvc', uuidLength: -1 };

export interface SidecarsOptions {
  csiAddress: string;
  /** Of each. */
  flags: readonly string[];
  /** `in turn`: two, of which one runs after the other. `together`: two at the same time; those who are ended take turns. */
  pods: 'one' | 'in turn' | 'together';
}

/** The sidecars of two Pods, of which one runs unless both are to: started, killed and started again as a kubelet would. */
export class Sidecars {
  readonly #stage: Stage;
  readonly #options: SidecarsOptions;
  /** How processes ended, and how often. */
  readonly endings = new Map<string, number>();
  #current: StartedProcess | undefined;
  /** The one that runs beside it, where two run together. */
  #beside: StartedProcess | undefined;
  /** Names of the two Pods; that of the current one is first. */
  #pods = ['chaos-a', 'chaos-b'];

  constructor(stage: Stage, options: SidecarsOptions) {
    this.#stage = stage;
    this.#options = options;
  }

  /** Starts the container of the current Pod, again if it has run before. */
  async start(life: Life): Promise<void> {
    this.#current = await this.#launch(life, this.#pods[0] ?? '');
    if (this.#options.pods !== 'together') return;
    if (this.#beside?.running() !== true) this.#beside = await this.#launch(life, this.#pods[1] ?? '');
    // The other one is ended next.
    [this.#current, this.#beside] = [this.#beside, this.#current];
    this.swap();
  }

  /** The other Pod is the current one from now on. */
  swap(): void {
    this.#pods.reverse();
  }

  /** Whether the current one runs. */
  running(): boolean {
    return this.#current?.running() === true;
  }

  /** What the current one has logged. */
  log(): string {
    return this.#current?.log() ?? '';
  }

  /**
   * Waits until the current one works, for a while, since it may be kept from it.
   *
   * @returns whether it does.
   * @throws when it refuses its flags.
   */
  async working(withinMs = 15_000): Promise<boolean> {
    const current = this.#current;
    if (current === undefined) return false;
    const works = await becomesReady(current, withinMs);
    if (!current.running() && (await current.ending()) === 'exit code 2') {
      throw new Error(`the sidecar does not start:\n${current.log()}`);
    }
    return works;
  }

  /** Starts the other Pod beside the current one, which then ends: a rolling update. */
  async replace(life: Life, togetherMs: number, signal: NodeJS.Signals): Promise<boolean> {
    const former = this.#current;
    this.swap();
    await this.start(life);
    await delay(togetherMs);
    return await this.#end(former, signal);
  }

  /** Halts the current process for a time; if the other Pod takes over meanwhile, both run on for a while. */
  async freeze(life: Life, frozenMs: number, takesOver: boolean): Promise<void> {
    const former = this.#current;
    if (former?.running() !== true) return;
    process.kill(former.pid, 'SIGSTOP');
    if (takesOver) {
      this.swap();
      await this.start(life);
      await this.working();
    } else await delay(frozenMs);
    process.kill(former.pid, 'SIGCONT');
    if (!takesOver) return;
    await delay(1000); // it must notice by itself
    await this.#end(former, 'SIGKILL');
  }

  /** Halts the current process for longer than its lease; nobody takes over meanwhile, and it must notice by itself. */
  async pause(life: Life, pausedMs: number, meanwhile: () => Promise<void>): Promise<void> {
    const paused = this.#current;
    if (paused?.running() !== true) return;
    process.kill(paused.pid, 'SIGSTOP');
    await Promise.all([delay(pausedMs), meanwhile()]);
    process.kill(paused.pid, 'SIGCONT');
    await delay(1000);
    if (!paused.running()) await this.start(life);
  }

  /** Ends the current one. @returns whether it was this signal. */
  async end(signal: NodeJS.Signals): Promise<boolean> {
    return await this.#end(this.#current, signal);
  }

  async #end(sidecar: StartedProcess | undefined, signal: NodeJS.Signals): Promise<boolean> {
    if (sidecar === undefined) return false;
    const ran = sidecar.running();
    const killer = delay(15_000, undefined, { ref: false }).then(() => sidecar.stop('SIGKILL'));
    await Promise.race([sidecar.stop(signal), killer]);
    return ran;
  }

  async #launch(life: Life, pod: string): Promise<StartedProcess> {
    const { csiAddress, flags, pods } = this.#options;
    const { prefix, uuidLength, journal, program } = life;
    const sidecar = await this.#stage.startSidecar({
      title: `${pod} (${prefix} ${uuidLength} ${program ?? journal ?? ''})`,
      program,
      csiAddress,
      ...(pods !== 'one' && { hostName: pod }),
      flags: [
        ...flags,
        `--volume-name-prefix=${prefix}`,
        `--volume-name-uuid-length=${uuidLength}`,
        ...(journal === undefined || program !== undefined ? [] : [`--intent-journal=${journal}`]),
      ],
    });
    void sidecar.ending().then((how) => this.endings.set(how, (this.endings.get(how) ?? 0) + 1));
    return sidecar;
  }
}
