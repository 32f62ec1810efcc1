import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../src/index.ts';

type Command = readonly [program: string, ...args: string[]];

/** A program that has to run all the time. */
export interface SupervisedOptions {
  name: string;
  /** Called before each start, after `prepare`, if it is a function. */
  command: Command | (() => Command);
  environment?: Record<string, string | undefined>;
  /** Called before each start. */
  prepare?: () => Promise<void>;
  /** Resolves once the program responds; tried again and again while it rejects, for at most 30 s. Default: at once. */
  probe?: (signal: AbortSignal) => Promise<void>;
  /** Called each time it responds. */
  onReady?: () => void;
  /** Probes the program once it is ready, and restarts it when it stays silent. Default: it is not probed. */
  liveness?: Liveness | undefined;
  /** What the program has last written elsewhere, for the log line about its end. Default: its output. */
  lastWords?: () => Promise<string>;
  logger: Logger;
}

/** How a running program is watched. */
export interface Liveness {
  /** Pause between two probes, and the time that each may take, in milliseconds. */
  readonly intervalMs: number;
  /** After this time without a response the program is killed, in milliseconds. */
  readonly silentMs: number;
  /** Whether a restart may help; called directly before it. */
  readonly mayKill: () => Promise<boolean>;
}

const minBackoffMs = 1000;
const maxBackoffMs = 30_000;
/** After a life of this length the next start is not delayed by earlier ends. */
const steadyMs = 60_000;
const readyTimeoutMs = 30_000;
const probeIntervalMs = 50;
const killAfterMs = 10_000;
/** How long the rest of the output may take after the end. */
const lastOutputMs = 100;
/** What is kept of the program's output, for the log line about its end. */
const outputLength = 2000;

/**
 * Starts a program, starts it again when it ends, after 1 s and then twice as long each time up to 30 s, and ends it with
 * SIGTERM, after 10 s with SIGKILL. When our process dies without a chance to do so, the kernel ends the program.
 */
export class SupervisedProcess implements AsyncDisposable {
  readonly #options: SupervisedOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #child: ChildProcess | undefined;
  #ready = Promise.withResolvers<undefined>();
  #isReady = false;
  #problem: string | undefined;
  #starts = 0;

  constructor(options: SupervisedOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  /** Whether it runs and has responded. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Why it does not respond, for people; undefined while it does, and until it has responded for the first time. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** How often it was started after the first time. */
  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /** Of the program, while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Sends the program a signal, if it runs. */
  kill(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Resolves while it runs and has responded, else as soon as it does. */
  whenReady(): Promise<undefined> {
    return this.#ready.promise;
  }

  /** Ends the program for good. Safe to repeat. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { name, logger } = this.#options;
    const { signal } = this.#stop;
    let backoffMs = minBackoffMs;
    for (;;) {
      const startedMs = performance.now();
      const end = await this.#live(signal).catch((err: unknown) => ({ err }));
      if (signal.aborted) return;
      logger.error({ program: name, ...end, retryInMs: backoffMs }, 'A program of the NFS server has ended');
      if (performance.now() - startedMs > steadyMs) backoffMs = minBackoffMs;
      await delay(backoffMs, undefined, { signal }).catch(() => undefined);
      backoffMs = Math.min(2 * backoffMs, maxBackoffMs);
    }
  }

  /** One life. @returns how it ended. @throws when it could not be started. */
  async #live(signal: AbortSignal): Promise<{ how: string }> {
    const { command, environment, prepare } = this.#options;
    await untilStopped(prepare?.() ?? Promise.resolve(), signal);
    const [program, ...args] = dyingWithUs(typeof command === 'function' ? command() : command);
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-outputLength)));
    }
    const closed = once(child, 'close').catch(() => undefined);
    const ended = once(child, 'exit').then(() => undefined);
    ended.catch(() => undefined);
    await once(child, 'spawn');
    this.#starts += 1;
    this.#child = child;
    const over = new AbortController();
    const ending = this.#endOn(signal, child, ended);
    const reporting = this.#reportReady(child, over.signal);
    await ended;
    over.abort();
    this.#child = undefined;
    this.#setNotReady(`${this.#options.name} has ended and is started again`);
    await Promise.all([reporting, ending.cancel()]);
    const how = child.signalCode === null ? `exit code ${child.exitCode ?? '?'}` : `signal ${child.signalCode}`;
    await Promise.race([closed, delay(lastOutputMs)]); // what it has started may keep its output open
    const words = (output + ((await this.#options.lastWords?.()) ?? '')).trim();
    return { how: words === '' ? how : `${how}: ${words}` };
  }

  /** SIGTERM once we are stopped, SIGKILL where that does not help. */
  #endOn(signal: AbortSignal, child: ChildProcess, ended: Promise<void>): { cancel: () => Promise<void> } {
    let killing: Promise<void> = Promise.resolve();
    const end = (): void => {
      child.kill();
      const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
      killing = ended.finally(() => clearTimeout(timer));
    };
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
    return {
      cancel: () => {
        signal.removeEventListener('abort', end);
        return killing;
      },
    };
  }

  /** A program that does not respond in time is killed, so that it gets another chance. */
  async #reportReady(child: ChildProcess, over: AbortSignal): Promise<void> {
    const { name, probe, logger } = this.#options;
    const late = AbortSignal.timeout(readyTimeoutMs);
    const isOver = (): boolean => over.aborted;
    let problem: unknown;
    while (!isOver() && !late.aborted) {
      try {
        await probe?.(AbortSignal.any([over, late]));
        if (isOver()) return;
        logger.info({ program: name, pid: child.pid }, 'A program of the NFS server is ready');
        this.#setReady();
        await this.#watch(child, over);
        return;
      } catch (error) {
        problem = error;
        await delay(probeIntervalMs, undefined, { signal: over }).catch(() => undefined);
      }
    }
    if (over.aborted) return;
    logger.error({ program: name, err: problem }, `A program of the NFS server did not respond within 30 s`);
    child.kill('SIGKILL');
  }

  /** Probes a program that is ready until its end; one that stays silent is killed. */
  async #watch(child: ChildProcess, over: AbortSignal): Promise<void> {
    const { name, liveness, probe, logger } = this.#options;
    if (liveness === undefined || probe === undefined) return;
    const isOver = (): boolean => over.aborted;
    let respondedMs = performance.now();
    while (!isOver()) {
      await delay(liveness.intervalMs, undefined, { signal: over }).catch(() => undefined);
      if (isOver()) return;
      const responds = await isResponding(probe, AbortSignal.any([over, AbortSignal.timeout(liveness.intervalMs)]));
      if (isOver()) return;
      if (responds) {
        respondedMs = performance.now();
        if (!this.#isReady) this.#setReady();
        continue;
      }
      const silentS = Math.round((performance.now() - respondedMs) / 1000);
      if (this.#isReady) logger.warn({ program: name, silentS }, 'A program of the NFS server does not respond');
      this.#setNotReady(`${name} has not responded for ${silentS} s`);
      if (performance.now() - respondedMs < liveness.silentMs || !(await liveness.mayKill())) continue;
      logger.error({ program: name, silentS }, 'A program of the NFS server stays silent and is killed');
      child.kill('SIGKILL');
      return;
    }
  }

  #setReady(): void {
    this.#isReady = true;
    this.#problem = undefined;
    this.#ready.resolve(undefined);
    this.#options.onReady?.();
  }

  #setNotReady(problem: string): void {
    if (!this.#stop.signal.aborted) this.#problem = problem;
    if (!this.#isReady) return;
    this.#isReady = false;
    this.#ready = Promise.withResolvers();
  }
}

/** Also ends the wait for a probe that ignores its signal. */
async function isResponding(probe: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return false;
  try {
    await untilStopped(probe(signal), signal);
    return true;
  } catch {
    return false;
  }
}

/** Waits no longer than the signal allows. @throws its reason. */
async function untilStopped(waiting: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(signal.reason as Error);
  signal.addEventListener('abort', stop, { once: true });
  try {
    await Promise.race([waiting, stopped.promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

/** An NFS server without its supervisor would hold the ports against the next one. */
function dyingWithUs(command: Command): Command {
  return ['setpriv', '--pdeathsig', 'KILL', '--', ...command];
}
