import { setTimeout as delay } from 'node:timers/promises';
import { startSidecar } from '../../test/support/sidecar-process.ts';
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
  kubeconfig: string;
  namespace: string;
  election: boolean;
  timeoutMs: number;
  /** Two at the same time, each of a Pod of its own; those who are ended take turns. */
  together: boolean;
  /** Takes the log of each process that has ended. */
  keepLog: (text: string) => void;
}

/** Flags that make a run short: pauses of a few seconds at most. */
const hurried = ['--retry-interval-start=500ms', '--retry-interval-max=3s'];
const election = [
  '--leader-election',
  '--leader-election-lease-duration=3s',
  '--leader-election-renew-deadline=2s',
  '--leader-election-retry-period=500ms',
];
const readyLine = 'Started provisioner controller';

/** The sidecars of two Pods, of which one runs unless both are to: started, killed and started again as a kubelet would. */
export class Sidecars {
  readonly #options: SidecarsOptions;
  /** How processes ended, and how often. */
  readonly endings = new Map<string, number>();
  #current: StartedProcess | undefined;
  /** The one that runs beside it, where two run together. */
  #beside: StartedProcess | undefined;
  /** Names of the two Pods; that of the current one is first. */
  #pods = ['chaos-a', 'chaos-b'];

  constructor(options: SidecarsOptions) {
    this.#options = options;
  }

  /** Starts the container of the current Pod, again if it has run before. */
  async start(life: Life): Promise<void> {
    this.#current = await this.#launch(life, this.#pods[0] ?? '');
    if (!this.#options.together) return;
    if (this.#beside?.running() !== true) this.#beside = await this.#launch(life, this.#pods[1] ?? '');
    // The other one is ended next.
    [this.#current, this.#beside] = [this.#beside, this.#current];
    this.#pods.reverse();
  }

  /**
   * Waits until the current one works, up to 15 s, since it may be kept from it.
   *
   * @returns whether it does.
   * @throws when it refuses its flags.
   */
  async working(): Promise<boolean> {
    const current = this.#current;
    const endMs = performance.now() + 15_000;
    while (current?.running() === true && performance.now() < endMs && !current.log().includes(readyLine))
      await delay(20);
    if (current?.running() === false && (await current.ending()) === 'exit code 2') {
      throw new Error(`the sidecar does not start:\n${current.log()}`);
    }
    return current?.running() === true && current.log().includes(readyLine);
  }

  /** Starts the other Pod beside the current one, which then ends: a rolling update. */
  async replace(life: Life, togetherMs: number, signal: NodeJS.Signals): Promise<boolean> {
    const former = this.#current;
    this.#pods.reverse();
    await this.start(life);
    await delay(togetherMs);
    return await this.#end(former, signal);
  }

  /** Halts the current process for a time; with an election the other Pod takes over, and both run on for a while. */
  async freeze(life: Life, frozenMs: number): Promise<void> {
    const former = this.#current;
    if (former?.running() !== true) return;
    process.kill(former.pid, 'SIGSTOP');
    if (this.#options.election) {
      this.#pods.reverse();
      await this.start(life);
      await this.working();
    } else await delay(frozenMs);
    process.kill(former.pid, 'SIGCONT');
    if (!this.#options.election) return;
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

  /** Ends whatever runs. */
  async endAll(): Promise<void> {
    await Promise.all([this.#end(this.#current, 'SIGKILL'), this.#end(this.#beside, 'SIGKILL')]);
  }

  async #end(sidecar: StartedProcess | undefined, signal: NodeJS.Signals): Promise<boolean> {
    if (sidecar === undefined) return false;
    const ran = sidecar.running();
    const killer = delay(15_000, undefined, { ref: false }).then(() => sidecar.stop('SIGKILL'));
    await Promise.race([sidecar.stop(signal), killer]);
    return ran;
  }

  async #launch(life: Life, pod: string): Promise<StartedProcess> {
    const { csiAddress, kubeconfig, namespace, keepLog } = this.#options;
    const sidecar = await startSidecar({
      program: life.program,
      csiAddress,
      kubeconfig,
      namespace,
      ...((this.#options.election || this.#options.together) && { hostName: pod }),
      flags: [
        `--timeout=${this.#options.timeoutMs}ms`,
        ...hurried,
        ...(this.#options.election ? election : []),
        `--volume-name-prefix=${life.prefix}`,
        `--volume-name-uuid-length=${life.uuidLength}`,
        ...(life.journal === undefined || life.program !== undefined ? [] : [`--intent-journal=${life.journal}`]),
      ],
    });
    const startedAt = new Date().toISOString();
    void sidecar.ending().then((how) => {
      this.endings.set(how, (this.endings.get(how) ?? 0) + 1);
      const flags = `${life.prefix} ${life.uuidLength} ${life.program ?? life.journal ?? ''}`;
      keepLog(`=== ${pod} (${flags}) from ${startedAt} to ${new Date().toISOString()}: ${how}\n${sidecar.log()}\n`);
    });
    return sidecar;
  }
}
