import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { Client, ClientUnaryCall, requestCallback } from '@grpc/grpc-js';
import type { CallRecord } from '../../../sandbox/hostpath/serve-call.ts';
import { startDriver } from '../../../sandbox/hostpath/driver.ts';
import type { Fault } from '../../../sandbox/hostpath/faults.ts';
import { parseFlags } from '../../../sandbox/hostpath/flags.ts';
import { programFile } from '../../support/program-file.ts';

const main = programFile('hostpath-driver');

/** What a test may decide about the driver's process. */
export interface HostpathOptions {
  /** Further flags; the address, the state directory and `--call-log` are given. */
  flags?: readonly string[];
  /** The folder of an earlier driver, to go on with its state and socket path; default: a new one. */
  home?: string;
  /** Replaces the environment. */
  env?: NodeJS.ProcessEnv;
}

/** The folder of a sample driver. */
class HostpathFolder {
  readonly home: string;
  readonly socketPath: string;
  readonly stateDir: string;

  constructor(home: string) {
    this.home = home;
    this.socketPath = path.join(home, 'csi.sock');
    this.stateDir = path.join(home, 'state');
  }

  /** Replaces `faults.json`. */
  async setFaults(faults: Fault[]): Promise<void> {
    const file = path.join(this.stateDir, 'faults.json');
    await writeFile(`${file}.test`, JSON.stringify(faults));
    await rename(`${file}.test`, file);
  }

  async faults(): Promise<Fault[]> {
    return JSON.parse(await readFile(path.join(this.stateDir, 'faults.json'), 'utf8')) as Fault[];
  }

  /** The calls so far. */
  async calls(): Promise<CallRecord[]> {
    const lines = (await readFile(path.join(this.stateDir, 'calls.jsonl'), 'utf8')).trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as CallRecord);
  }
}

/** The sample driver in this process, in a temporary folder that goes when it is disposed of. */
export class HostpathHere extends HostpathFolder implements AsyncDisposable {
  readonly #driver: Awaited<ReturnType<typeof startDriver>>;

  private constructor(home: string, driver: Awaited<ReturnType<typeof startDriver>>) {
    super(home);
    this.#driver = driver;
  }

  static async start({ flags = [], home: given }: Omit<HostpathOptions, 'env'> = {}): Promise<HostpathHere> {
    const home = given ?? (await mkdtemp(path.join(tmpdir(), 'hostpath-')));
    const options = parseFlags([...givenFlags(home), ...flags]);
    if (options === 'help') throw new Error('--help starts no driver');
    return new HostpathHere(home, await startDriver(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#driver.close();
    await rm(this.home, { recursive: true, force: true });
  }
}

/** The sample driver as a process of its own, in a temporary folder that goes when it is disposed of. */
export class HostpathProcess extends HostpathFolder implements AsyncDisposable {
  readonly process: ChildProcess;
  /** Standard error, complete once the process has ended. */
  readonly errors: Promise<string>;
  /** The line of standard output that says the driver listens. */
  ready: { address: string; driver: string; pid: number } | undefined;

  private constructor(home: string, process: ChildProcess) {
    super(home);
    this.process = process;
    if (process.stderr === null) throw new Error('standard error must be a pipe');
    this.errors = text(process.stderr);
  }

  /** Starts the driver and waits until it listens. */
  static async start(options: HostpathOptions = {}): Promise<HostpathProcess> {
    const driver = await HostpathProcess.spawn(options);
    if (driver.process.stdout === null) throw new Error('standard output must be a pipe');
    for await (const line of createInterface(driver.process.stdout)) {
      driver.ready = JSON.parse(line) as { address: string; driver: string; pid: number };
      return driver;
    }
    throw new Error(`the driver ended: ${await driver.errors}`);
  }

  /** Starts the driver without waiting, for those that must not come up. */
  static async spawn({ flags = [], home, env }: HostpathOptions = {}): Promise<HostpathProcess> {
    const folder = home ?? (await mkdtemp(path.join(tmpdir(), 'hostpath-')));
    const child = spawn(process.execPath, [main, ...givenFlags(folder), ...flags], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(env === undefined ? {} : { env }),
    });
    return new HostpathProcess(folder, child);
  }

  /** Sends a signal and waits for the end. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const ended = once(this.process, 'exit');
      this.process.kill(signal);
      await ended;
    }
    return { code: this.process.exitCode, signal: this.process.signalCode };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await rm(this.home, { recursive: true, force: true });
  }
}

function givenFlags(home: string): string[] {
  return ['--csi-address', `unix://${home}/csi.sock`, '--state-dir', `${home}/state`, '--call-log'];
}

type Unary<Request, Response> = (argument: Request, callback: requestCallback<Response>) => ClientUnaryCall;
type RequestOf<Method> = Method extends Unary<infer Request, infer _> ? Request : never;
type ResponseOf<Method> = Method extends Unary<infer _, infer Response> ? Response : never;

/** One call; rejects with the ServiceError. `started` is handed the call, to cancel it. */
export async function call<C extends Client, M extends keyof C & string>(
  client: C,
  method: M,
  request: RequestOf<C[M]>,
  started: (call: ClientUnaryCall) => void = () => undefined,
): Promise<ResponseOf<C[M]>> {
  return new Promise((resolve, reject) => {
    const send = client[method] as Unary<RequestOf<C[M]>, ResponseOf<C[M]>>;
    const running = send.call(client, request, (error, response) => {
      if (error !== null) reject(error);
      else if (response === undefined) reject(new Error('neither error nor response'));
      else resolve(response);
    });
    started(running);
  });
}
