/** The whole sidecar in this process, put together by the program's own wiring from a command line. */
import { EventEmitter } from 'node:events';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { parseCommandLine, reportExit } from '../../src/cli/command-line.ts';
import type { Environment } from '../../src/cli/config.ts';
import { createLogger } from '../../src/cli/logging.ts';
import { ExitError } from '../../src/run/exit.ts';
import { runSidecar } from '../../src/cli/run.ts';
import { listenForShutdown, type Shutdown } from '../../src/run/shutdown.ts';
import { Bulletin } from './bulletin.ts';

export interface ProgramOptions {
  socketPath: string;
  /** URL of the API server. */
  apiUrl: string;
  flags?: readonly string[];
  /** Variables such as `NODE_NAME`. Default: none. */
  environment?: Environment;
  /** Default: real time. */
  clock?: Clock;
  /** Of the time that a drain may take. Default: real time. */
  shutdownClock?: Clock;
  /** Default: `Math.random`. */
  random?: () => number;
}

/** How the program ended: its exit code. */
export interface Ending {
  code: number;
}

/** A running program; dispose it. */
export class Program implements AsyncDisposable {
  /** Everything written to standard error: one entry per write of the logger. */
  readonly lines: string[] = [];
  /** Resolves when the program has ended; rejects for what would be a crash. */
  readonly ended: Promise<Ending>;
  readonly #bulletin = new Bulletin();
  readonly #shutdown: Shutdown;
  readonly #signals = new EventEmitter();

  constructor(options: ProgramOptions) {
    const {
      socketPath,
      apiUrl,
      flags = [],
      environment = {},
      clock = systemClock,
      shutdownClock = systemClock,
      random,
    } = options;
    const parsed = parseCommandLine({
      argv0: 'csi-provisioner',
      args: [`--csi-address=${socketPath}`, `--master=${apiUrl}`, ...flags],
      environment,
      version: 'v0.0.0-test',
    });
    if (parsed.kind !== 'run') throw new Error('the flags do not start the program');
    const { config } = parsed;
    const write = (line: string): void => {
      this.lines.push(line);
      this.#bulletin.notify();
    };
    const logger = createLogger({ ...config.logging, sink: { write } });
    const shutdown = listenForShutdown({
      signals: this.#signals,
      clock: shutdownClock,
      logger,
      callTimeoutMs: config.csiTimeoutMs,
      onSecondSignal: () => undefined,
    });
    this.#shutdown = shutdown;
    this.ended = runSidecar({ config, environment: { ...environment }, shutdown, random, clock, logger }).then(
      () => ({ code: 0 }),
      (error: unknown) => {
        if (error instanceof ExitError) return { code: reportExit(error, { logger, writeError: write }) };
        if (error === shutdown.stop.reason) return { code: 0 };
        throw error;
      },
    );
    this.ended.catch(() => undefined); // whoever awaits it hears of it
  }

  /** Resolves with the first line that holds the text. */
  async logged(text: string): Promise<string> {
    return await this.#bulletin.until(`a log line with ${text}`, () => this.lines.find((line) => line.includes(text)));
  }

  /** What the program would see of a signal to its process. */
  signal(signal: 'SIGTERM' | 'SIGINT'): void {
    this.#signals.emit(signal);
  }

  /** Ends the program without waiting for what is under way; safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#shutdown.fail(new Error('the test is over'));
    await this.ended;
    this.#shutdown[Symbol.dispose]();
  }
}
