/** The sample driver, with calls that are spoiled on purpose. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  type handleUnaryCall,
  type sendUnaryData,
  Server,
  ServerCredentials,
  status,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { systemClock } from '../../../src/base/clock.ts';
import { CallError } from '../../../sandbox/hostpath/call-error.ts';
import { parseFlags } from '../../../sandbox/hostpath/flags.ts';
import { openState } from '../../../sandbox/hostpath/hostpath-state.ts';
import { PendingOperations } from '../../../sandbox/hostpath/pending-operations.ts';
import { hostpathServices } from '../../../sandbox/hostpath/services.ts';

/** A message of csi.v1 as plain data. */
export type Message = Record<string, unknown>;

/** What is done instead of a call. */
export type Spoil = (request: Message, proper: (request?: Message) => Promise<Message>) => Promise<Message> | Message;

export interface BrokenDriverOptions {
  /** By the name of the call. */
  readonly spoils: Readonly<Record<string, Spoil>>;
  /** Of the sample driver, besides those that every broken driver has. */
  readonly flags?: readonly string[];
  /** The node that it serves alone, and where it listens. Default: two segments, and a socket in a folder of its own. */
  readonly place?: { readonly node: string; readonly socketPath: string };
}

/** Every broken driver has all capabilities, and two segments unless it serves one node. */
function commonFlags(node: string | undefined): string[] {
  if (node !== undefined) return ['--attach', `--topology=node=${node}`, `--node-id=${node}`];
  return ['--attach', '--topology=zone=a', '--topology=zone=b', '--node-id=localhost'];
}

/** Serves in this process, in a temporary folder that goes with it. */
export class BrokenDriver implements AsyncDisposable {
  readonly socketPath: string;
  readonly #server = new Server();
  readonly #folder: string;
  readonly #stop = new AbortController();

  private constructor(folder: string, socketPath = path.join(folder, 'csi.sock')) {
    this.#folder = folder;
    this.socketPath = socketPath;
  }

  static async start({ spoils, flags = [], place }: BrokenDriverOptions): Promise<BrokenDriver> {
    const driver = new BrokenDriver(await mkdtemp(path.join(tmpdir(), 'broken-')), place?.socketPath);
    await driver.#serve(spoils, [...commonFlags(place?.node), ...flags]);
    return driver;
  }

  /** It runs in this process, so it does not end by itself. */
  lastWords(): string {
    return 'it is running';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#server.forceShutdown();
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #serve(spoils: BrokenDriverOptions['spoils'], flags: readonly string[]): Promise<void> {
    const stateDir = path.join(this.#folder, 'state');
    const options = parseFlags([`--csi-address=${this.socketPath}`, `--state-dir=${stateDir}`, ...flags]);
    if (options === 'help') throw new Error('--help starts no driver');
    const parts = { state: openState(stateDir), pending: new PendingOperations(), reservations: new Set<never>() };
    const services = hostpathServices(
      { ...options, ...parts },
      {
        faultsFile: path.join(stateDir, 'faults.json'),
        callLogFile: undefined,
        clock: systemClock,
        stop: this.#stop.signal,
      },
    );
    for (const { definition, implementation } of services) {
      for (const [method, spoil] of Object.entries(spoils)) {
        const proper = implementation[method] as handleUnaryCall<Message, Message> | undefined;
        if (proper !== undefined) implementation[method] = spoiled(proper, spoil);
      }
      this.#server.addService(definition, implementation);
    }
    await listen(this.#server, this.socketPath);
  }
}

function spoiled(proper: handleUnaryCall<Message, Message>, spoil: Spoil): handleUnaryCall<Message, Message> {
  return (call, callback) => {
    const forward = (request = call.request): Promise<Message> => called(proper, call, request);
    void answer(() => spoil(call.request, forward), callback);
  };
}

function called(
  proper: handleUnaryCall<Message, Message>,
  call: ServerUnaryCall<Message, Message>,
  request: Message,
): Promise<Message> {
  const { promise, resolve, reject } = Promise.withResolvers<Message>();
  const changed = Object.create(call, { request: { value: request } }) as typeof call;
  proper(changed, (error, response) => {
    if (error === null) resolve(response ?? {});
    else reject(Object.assign(new Error('details' in error ? error.details : ''), error));
  });
  return promise;
}

async function answer(make: () => Promise<Message> | Message, callback: sendUnaryData<Message>): Promise<void> {
  try {
    callback(null, await make());
  } catch (error) {
    const { code, details } = error as { code?: status; details?: string };
    if (error instanceof CallError) callback({ code: error.code, details: error.message });
    else callback({ code: code ?? status.UNKNOWN, details: details ?? String(error) });
  }
}

async function listen(server: Server, socketPath: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) => {
    if (error === null) resolve(undefined);
    else reject(error);
  });
  await promise;
}
