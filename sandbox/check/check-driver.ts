/**
 * `csi-sandbox check`: does to a driver what Kubernetes will do to it. First by calls to its socket, then in a sandbox, and at the
 * end it looks at all answers together and at what is left.
 */
import { Bench } from './bench.ts';
import type { BenchOptions } from './bench-options.ts';
import type { Check, CheckResult } from './check.ts';
import { forAllChecks } from './check-signal.ts';
import { cleanUp } from './clean-up.ts';
import type { DriverProgram } from './driver-program.ts';
import { KubernetesBench } from './kubernetes-bench.ts';
import { NodeDeployment, type StartNodeDriver } from './node-deployment.ts';
import { runChecks } from './runner.ts';
import { sidecarCalls } from './sidecar-calls.ts';
import { waitForDriver } from './wait-for-driver.ts';
import { CheckFailed } from './outcome.ts';

export interface CheckDriverOptions {
  readonly bench: BenchOptions;
  readonly checks: readonly Check[];
  /** How long a check may take, in milliseconds. */
  readonly limitMs: number;
  /** How long to wait until the driver is ready after a restart, in milliseconds. */
  readonly waitMs: number;
  /** The driver's process, which starts again whenever it is killed. Undefined: nobody knows how. */
  readonly driver?: Pick<DriverProgram, 'kill' | 'lastWords'> | undefined;
  /** Starts the driver for a node of its own. Undefined: nobody knows how. */
  readonly startNodeDriver?: StartNodeDriver | undefined;
  /** What starts the sidecar, after `node`. Default: the one beside this program. */
  readonly sidecarProgram?: readonly string[];
  /** Folder for the sidecar's log. Default: it goes with the sandbox. */
  readonly logFolder?: string | undefined;
  /** Ends the run early; what was made is removed. */
  readonly signal: AbortSignal;
  readonly report: (result: CheckResult) => void;
  /** Takes a line for each thing that could not be removed at the end. Default: nothing does. */
  readonly leftBehind?: (text: string) => void;
}

const parts = ['driver', 'kubernetes', 'answers'] as const;

/** @returns the results; fewer than checks when the signal has ended it. Never rejects for what a driver does. */
export async function checkDriver(options: CheckDriverOptions): Promise<CheckResult[]> {
  const { checks, limitMs, waitMs, logFolder, sidecarProgram, signal, report, startNodeDriver } = options;
  const { leftBehind = () => undefined } = options;
  using bench = await Bench.start(options.bench);
  await using sandbox = new Lazy((ending) =>
    KubernetesBench.start(bench, {
      logFolder,
      sidecarProgram,
      waitMs,
      signal: AbortSignal.any([signal, ending]),
      observe: sidecarCalls(bench.ledger).observe,
    }),
  );
  await using perNode = new Lazy((ending, start: StartNodeDriver) =>
    NodeDeployment.start({
      bench: options.bench,
      start,
      waitMs,
      logFolder,
      sidecarProgram,
      signal: AbortSignal.any([signal, ending]),
      leftBehind,
    }),
  );
  bench.kubernetes = () => sandbox.started();
  if (startNodeDriver !== undefined) bench.nodeDeployment = () => perNode.started(startNodeDriver);
  bench.restartDriver = restarting(bench, options);
  await bench.noteListed();
  const results: CheckResult[] = [];
  const stop = async (): Promise<void> => {
    await sandbox.stop();
    await perNode.stop();
  };
  try {
    for (const part of parts) {
      const own = checks.filter((check) => check.part === part);
      results.push(...(await runChecks({ bench, checks: own, limitMs, signal, report }, results)));
      if (part === 'kubernetes') await stop();
    }
  } finally {
    await stop();
    for (const text of await cleanUp(bench)) leftBehind(text);
  }
  return results;
}

/** Something that is started once, when it is first needed. */
class Lazy<T extends AsyncDisposable, Options extends unknown[]> implements AsyncDisposable {
  readonly #start: (ending: AbortSignal, ...options: Options) => Promise<T>;
  readonly #ending = new AbortController();
  #starting: Promise<T> | undefined;

  /** @param start - its signal aborts what cannot be started, such as for a driver that is gone. */
  constructor(start: (ending: AbortSignal, ...options: Options) => Promise<T>) {
    this.#start = start;
  }

  started(...options: Options): Promise<T> {
    this.#starting ??= forAllChecks(() => this.#start(this.#ending.signal, ...options));
    return this.#starting;
  }

  /** Claims that are left keep their volumes, which are then deleted by calls to the driver. */
  async stop(): Promise<void> {
    const starting = this.#starting;
    this.#starting = undefined;
    this.#ending.abort();
    const running = await starting?.catch(() => undefined);
    await running?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function restarting(bench: Bench, { driver, waitMs, signal }: CheckDriverOptions): Bench['restartDriver'] {
  if (driver === undefined) return undefined;
  const { socketPath } = bench.options;
  return async () => {
    await driver.kill();
    try {
      await waitForDriver({ socketPath, waitMs, signal, report: () => undefined });
    } catch (error) {
      throw new CheckFailed(`killed and started again: ${(error as Error).message}; ${driver.lastWords()}`);
    }
    await bench.callable();
  };
}
