/** What one story happens on: a sandbox, a gate before it, a folder, and one process of the provisioner after the other. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { type PersistentVolume, persistentVolumes } from '../index.ts';
import { ApiGate, type GateCredentials, type HeldRequest, type Stop } from './api-gate.ts';
import { StartedProgram } from './child-process.ts';
import type { Bench, ProvisionerCommand, ProvisionerStart, TestProvisionerOptions } from './conformance-options.ts';
import { eventually } from './eventually.ts';
import { freeLocks } from './free-locks.ts';
import { imbalance } from './imbalance.ts';
import { openRecords, openText } from './open-records.ts';
import { startSandbox, type TestSandbox } from './start-sandbox.ts';
import type { TestClaim } from './test-claim.ts';

/** For what takes no longer than a few requests, in milliseconds. */
const promptMs = 60_000;
const stopMs = 30_000;
const logLines = 25;

export type Settled = TestProvisionerOptions & { settleMs: number };

/** The class that every story has, and another whose volumes are kept. */
export const classNames = { delete: 'tested', retain: 'tested-retain' } as const;

export class StoryBench implements AsyncDisposable {
  readonly sandbox: TestSandbox;
  readonly place: Bench;
  readonly #options: Settled;
  readonly #gate: ApiGate;
  readonly #command: ProvisionerCommand;
  readonly #resources: AsyncDisposableStack;
  readonly #seen = new Map<string, number>();
  #program: StartedProgram | undefined;
  #frozen: { program: StartedProgram; held: HeldRequest } | undefined;
  #processes = 0;
  #startedMs = 0;
  #revokedMs = 0;

  private constructor(
    options: Settled,
    parts: { sandbox: TestSandbox; place: Bench; gate: ApiGate; command: ProvisionerCommand },
    resources: AsyncDisposableStack,
  ) {
    this.#options = options;
    this.sandbox = parts.sandbox;
    this.place = parts.place;
    this.#gate = parts.gate;
    this.#command = parts.command;
    this.#resources = resources;
  }

  static async open(start: ProvisionerStart, options: Settled): Promise<StoryBench> {
    await using opening = new AsyncDisposableStack();
    const root = await mkdtemp(path.join(tmpdir(), 'provisioner-story-'));
    opening.defer(() => rm(root, { recursive: true, force: true }));
    const folder = path.join(root, 'storage');
    await mkdir(folder);
    const { rbac, settleMs } = options;
    const patienceMs = Math.max(promptMs, settleMs);
    const sandbox = opening.use(await startSandbox({ patienceMs, ...(rbac !== undefined && { rbac }) }));
    const text = await readFile(sandbox.provisionerKubeconfig, 'utf8');
    const gate = opening.use(await ApiGate.start(sandbox.url, credentialsIn(text)));
    const kubeconfig = path.join(root, 'kubeconfig');
    await writeFile(kubeconfig, withoutCredentials(text).replaceAll(sandbox.url, gate.url), { mode: 0o600 });
    const ending = new AbortController();
    opening.defer(() => ending.abort());
    const place: Bench = { folder, kubeconfig, signal: ending.signal };
    const prepared = await options.prepare?.(place);
    if (prepared !== undefined) opening.use(prepared);
    await makeClasses(sandbox, options);
    const given = await start(place);
    const command = 'command' in given ? given : { command: given };
    return new StoryBench(options, { sandbox, place, gate, command }, opening.move());
  }

  /** How long `revoked` took from the start of the process, in milliseconds; 0 before it. */
  get revokedMs(): number {
    return this.#revokedMs;
  }

  /** Starts the next process. */
  async start(): Promise<void> {
    const { command, env = {}, cwd } = this.#command;
    this.#processes++;
    this.#startedMs = performance.now();
    this.#program = await StartedProgram.start({
      command,
      env: { KUBECONFIG: this.place.kubeconfig, ...env },
      cwd,
    });
  }

  claim(storageClassName: string = classNames.delete): TestClaim {
    const { storage = '1Mi' } = this.#options;
    return this.sandbox.claim({ storageClassName, storage });
  }

  /**
   * Kills the process once it comes to the step.
   *
   * @param unless - once it resolves the process will not come there any more.
   * @returns whether it was killed.
   */
  async killAt(stop: Stop, unless?: (signal: AbortSignal) => Promise<unknown>): Promise<boolean> {
    const passed = (signal: AbortSignal): Promise<boolean>[] => (unless ? [unless(signal).then(() => false)] : []);
    return await this.#atStep(stop, { others: passed, what: 'the step', act: () => this.kill() });
  }

  /** Waits until the condition is met, or the process comes to the step. Then it is killed. */
  async killOnce(isReached: () => boolean | Promise<boolean>, last: Stop): Promise<void> {
    await this.#atStep(last, {
      others: (signal) => [this.#watch(isReached, signal)],
      what: 'the moment',
      act: () => this.kill(),
    });
  }

  /** Freezes the process once it comes to the step. Its lease expires, so that the next process takes over. */
  async freezeAt(stop: Stop): Promise<void> {
    const freeze = (held: HeldRequest): Promise<void> => {
      if (this.#program === undefined) this.refuse('no process was started');
      this.#program.freeze();
      this.#frozen = { program: this.#program, held };
      return Promise.resolve();
    };
    await this.#atStep(stop, { others: () => [], what: 'the step', act: freeze });
  }

  /** The frozen process goes on. The API server has closed the connection on which it waited. */
  thaw(): void {
    this.#frozen?.held.close();
    this.#frozen?.program.thaw();
  }

  /** The names of the storage that exists; what is new was made by the current process. */
  async storage(): Promise<readonly string[]> {
    return await this.#options.listStorage(this.place);
  }

  /** SIGKILL for the current process; its locks are free then. */
  async kill(): Promise<void> {
    await this.#program?.kill();
    await this.#look();
    await freeLocks(this.sandbox.client);
  }

  storageOf(volume: PersistentVolume): string {
    return this.#options.storageOf(volume, this.place);
  }

  async writeData(volume: PersistentVolume): Promise<void> {
    await this.#options.data?.write(volume, this.place);
  }

  /** @throws a loss. */
  async checkData(volume: PersistentVolume): Promise<void> {
    try {
      await this.#options.data?.check(volume, this.place);
    } catch (error) {
      const { name } = volume.metadata;
      this.refuse(`loss: the data in the PersistentVolume ${name} is gone: ${(error as Error).message}`);
    }
  }

  /** Waits until the storage is what the volumes need, and nothing else. @throws with what is wrong. */
  async balanced(): Promise<void> {
    await this.#settled(() => this.#imbalance());
  }

  /** Waits until there is neither storage nor a record of a claim that was deleted without a volume. @throws with what is wrong. */
  async revoked(): Promise<void> {
    await this.#settled(async () => {
      const records = await openRecords(this.sandbox.client);
      return [...(await this.#imbalance()), ...records.map((record) => openText(record))];
    });
    this.#revokedMs = performance.now() - this.#startedMs;
  }

  async #settled(imbalance: () => Promise<string[]>): Promise<void> {
    const check = async (): Promise<void> => {
      const wrong = await imbalance();
      if (wrong.length > 0) throw new Error(wrong.join('\n'));
    };
    const { settleMs: withinMs } = this.#options;
    await this.#explained(eventually(check, { withinMs, signal: this.#hopeless }));
  }

  /** A claim and its volume come and go: whatever waited before has been looked at by then. */
  async passTime(): Promise<void> {
    const claim = this.claim();
    const volume = await this.bound(claim);
    const storage = this.storageOf(volume);
    await claim.delete();
    await this.gone(volume);
    this.#seen.delete(storage);
  }

  /** Waits until the claim is Bound. */
  async bound(claim: TestClaim): Promise<PersistentVolume> {
    const signal = this.#hopeless;
    const volume = await this.#explained(claim.bound({ withinMs: this.#options.settleMs, signal }));
    await this.#look();
    return volume;
  }

  /** Waits until the volume is gone. */
  async gone({ metadata: { name } }: PersistentVolume): Promise<void> {
    const signal = this.#hopeless;
    await this.#explained(this.sandbox.volume(name).gone({ withinMs: this.#options.settleMs, signal }));
  }

  /** @throws the message, with the end of the log. */
  refuse(message: string): never {
    throw this.#withLog(new Error(message));
  }

  /** Ends the process in order; then nothing may come any more. */
  async finish(): Promise<void> {
    await this.balanced();
    await Promise.all([this.#program?.stop(stopMs), this.#frozen?.program.stop(stopMs)]);
    const wrong = await this.#imbalance();
    if (wrong.length > 0) throw this.#withLog(new Error(wrong.join('\n')));
    if (this.sandbox.forbidden.aborted) throw this.#withLog(this.sandbox.forbidden.reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#frozen?.program.kill();
    await this.#program?.kill();
    await this.#resources.disposeAsync();
  }

  /**
   * Acts when the process comes to the step, or when the first of the others resolves with true. With false it ends without.
   *
   * @param what - what was not reached, for an error.
   */
  async #atStep(
    stop: Stop,
    {
      others,
      what,
      act,
    }: {
      others: (signal: AbortSignal) => readonly Promise<boolean>[];
      what: string;
      act: (held: HeldRequest) => Promise<void>;
    },
  ): Promise<boolean> {
    const held = this.#gate.hold(stop);
    const end = new AbortController();
    const { signal } = end;
    try {
      const reached = held.reached.then(() => true);
      const waits = [reached, ...others(signal), this.#late(signal, what), this.#refused(signal)];
      const isReached = await this.#explained(Promise.race(waits));
      if (isReached) await act(held);
      return isReached;
    } finally {
      end.abort();
      await this.#look();
      held.release();
    }
  }

  /** Aborts when the provisioner lacks a right, or has ended although the story did not end it. */
  get #hopeless(): AbortSignal {
    const { forbidden } = this.sandbox;
    return this.#program === undefined ? forbidden : AbortSignal.any([forbidden, this.#program.endedByItself]);
  }

  async #late(signal: AbortSignal, what: string): Promise<never> {
    const withinMs = Math.max(promptMs, this.#options.settleMs);
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => resolve(undefined), withinMs);
    signal.addEventListener('abort', () => clearTimeout(timer));
    await promise;
    throw new Error(`the provisioner did not reach ${what} within ${withinMs / 1000} s`);
  }

  async #refused(signal: AbortSignal): Promise<never> {
    const end = AbortSignal.any([this.#hopeless, signal]);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    if (end.aborted) resolve(undefined);
    end.addEventListener('abort', resolve, { once: true });
    await promise;
    throw end.reason;
  }

  async #watch(isReached: () => boolean | Promise<boolean>, signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted && !(await isReached())) await turn();
    return !signal.aborted;
  }

  /** Notes which storage the current process has made. */
  async #look(): Promise<void> {
    for (const name of await this.storage()) if (!this.#seen.has(name)) this.#seen.set(name, this.#processes);
  }

  async #imbalance(): Promise<string[]> {
    const volumes = (await this.sandbox.client.list<PersistentVolume>(persistentVolumes)).map((volume) => ({
      name: volume.metadata.name,
      storage: this.storageOf(volume),
      claim: `${volume.spec.claimRef?.namespace}/${volume.spec.claimRef?.name}`,
    }));
    return imbalance({ storage: await this.storage(), volumes, seen: this.#seen });
  }

  async #explained<T>(waiting: Promise<T>): Promise<T> {
    try {
      return await waiting;
    } catch (error) {
      throw this.#withLog(error);
    }
  }

  #withLog(error: unknown): Error {
    const reason = error instanceof Error ? error.message : String(error);
    const message = [this.sandbox.missingRights, reason].filter((text) => text !== '').join('\n');
    const log = (this.#program?.log ?? '').trimEnd().split('\n').slice(-logLines).join('\n');
    return new Error(`${message}\n\nThe end of the log of process ${this.#processes}:\n${log}`, { cause: error });
  }
}

/** What a kubeconfig of a sandbox has over TLS; undefined over plain HTTP. */
function credentialsIn(kubeconfig: string): GateCredentials | undefined {
  const [, ca] = /certificate-authority-data: (\S+)/.exec(kubeconfig) ?? [];
  const [, token] = /token: "(\S+)"/.exec(kubeconfig) ?? [];
  if (ca === undefined || token === undefined) return undefined;
  return { ca: Buffer.from(ca, 'base64').toString(), token };
}

/** The same for the gate, which is plain HTTP. */
function withoutCredentials(kubeconfig: string): string {
  return kubeconfig
    .replace(/certificate-authority-data: .*/, 'insecure-skip-tls-verify: true')
    .replace(/user:\s+token: .*/, 'user: {}');
}

async function makeClasses(sandbox: TestSandbox, options: Settled): Promise<void> {
  const { provisionerName: provisioner, storageClass = {} } = options;
  await sandbox.storageClass({ name: classNames.delete, reclaimPolicy: 'Delete', ...storageClass, provisioner });
  await sandbox.storageClass({ name: classNames.retain, ...storageClass, reclaimPolicy: 'Retain', provisioner });
}
