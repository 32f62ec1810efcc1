/** A `Transport` without sockets: single requests and lists go over the network of the test, watches arrive at once. */
import { whenPermitted } from '../../../../../src/base/permit.ts';
import type { Clock } from '../../../../../src/base/clock.ts';
import { silentLogger } from '../../../../../src/base/logger.ts';
import { TransportError } from '../../../../../src/kube/client/api-error.ts';
import { MissingPermissions } from '../../../../../src/kube/client/missing-permissions.ts';
import type { RequestOptions, StreamedResponse } from '../../../../../src/kube/client/request.ts';
import type { Transport } from '../../../../../src/kube/client/transport.ts';
import { persistentVolumeClaims, persistentVolumes } from '../../../../../src/provision/objects.ts';
import type { Api, Watcher } from './api.ts';
import type { Caller, Network } from './network.ts';

/** An event of a watch. */
export interface WatchLine {
  type: string;
  object: { metadata: { resourceVersion?: string } };
}

/** How long a request to the API server may take, in milliseconds. */
export const requestLimitMs = 15_000;

export interface SimTransportOptions {
  api: Api;
  network: Network;
  caller: Caller;
  clock: Clock;
  /** What the process is shown instead of the response: for clients that lie. */
  shown?: (options: RequestOptions, answer: unknown) => unknown;
  /** What is sent instead of the body. */
  sent?: (options: RequestOptions) => unknown;
  /** Events of watches that never arrive. */
  hides?: (options: RequestOptions, event: WatchLine) => boolean;
  /** Called where a volume is looked for by its name, and where a claim is read. */
  onLook: (at: 'volumes' | 'claim', name: string) => void;
}

/** What of `Transport` is used below a `KubeClient`, a reflector and a paged list. */
export class SimTransport implements Pick<
  Transport,
  'request' | 'stream' | 'fence' | 'fenced' | 'missingPermissions' | 'distrust'
> {
  readonly missingPermissions: MissingPermissions;
  readonly #options: SimTransportOptions;
  readonly #fence = new AbortController();
  /** What watches have not delivered yet, in order; undefined: they are not held. */
  #held: (() => void)[] | undefined;
  /** Of the watches of volumes that were open when these were held. */
  #heldVolumes: (() => void)[] | undefined;
  #volumesHold = 0;

  constructor(options: SimTransportOptions) {
    this.#options = options;
    this.missingPermissions = new MissingPermissions({ clock: options.clock, logger: silentLogger });
  }

  /** As the code under test takes it. */
  get asTransport(): Transport {
    return this as unknown as Transport;
  }

  get fenced(): AbortSignal {
    return this.#fence.signal;
  }

  fence(reason: Error): void {
    this.#fence.abort(reason);
  }

  distrust(): void {
    // there are no connections that could be dead
  }

  /** Watches deliver nothing until `releaseWatches`. */
  holdWatches(): void {
    this.#held ??= [];
  }

  /** The open watches of volumes deliver nothing until `releaseWatches`; a new one does. */
  holdVolumes(): void {
    this.#heldVolumes ??= [];
    this.#volumesHold++;
  }

  releaseWatches(): void {
    const held = [...(this.#heldVolumes ?? []), ...(this.#held ?? [])];
    this.#held = this.#heldVolumes = undefined;
    for (const deliver of held) deliver();
  }

  request<T>(options: RequestOptions): Promise<T> {
    return whenPermitted(options.permit, this.#fence.signal, () => this.#send<T>(options));
  }

  #send<T>(options: RequestOptions): Promise<T> {
    const { api, network, caller, shown, sent, onLook } = this.#options;
    const { verb, resource, name = '' } = options.info;
    const body: unknown = structuredClone(sent === undefined ? options.body : sent(options));
    const [, looked] = /^metadata\.name=(.*)$/.exec(String(options.query?.['fieldSelector'] ?? '')) ?? [];
    const isClaim = verb === 'get' && resource === persistentVolumeClaims;
    return network.send<T>({
      caller,
      what: `${verb} ${resource.plural} ${name}`,
      limitMs: requestLimitMs,
      execute: () => {
        if (isClaim) onLook('claim', name);
        else if (resource === persistentVolumes && looked !== undefined) onLook('volumes', looked);
        const answer = api.request({ ...options, body });
        return (shown === undefined ? answer : shown(options, answer)) as T;
      },
      lost: (why) => new TransportError(why, { code: why === 'timeout' ? 'TIMEOUT' : 'ECONNRESET' }),
      survivesBreak: options.method !== 'GET',
      signals: [options.signal, this.#fence.signal],
    });
  }

  async stream(options: RequestOptions & { watch: boolean }): Promise<StreamedResponse> {
    this.#fence.signal.throwIfAborted();
    if (options.watch) return { body: this.#watch(options), isProtobuf: false };
    return { body: oneChunk(await this.request<object>(options)), isProtobuf: false };
  }

  async *#watch(options: RequestOptions): AsyncGenerator<Uint8Array> {
    const { info, query, signal } = options;
    const { api, hides = () => false } = this.#options;
    const isOfVolumes = info.resource === persistentVolumes;
    const openedAt = this.#volumesHold;
    const lines: Uint8Array[] = [];
    let wake = Promise.withResolvers<undefined>();
    let ended: 'in time' | 'broken' | undefined;
    const wakeUp = (): void => wake.resolve(undefined);
    const inOrder = (deliver: () => void): void => {
      const isHeld = isOfVolumes && openedAt < this.#volumesHold;
      const held = this.#held ?? (isHeld ? this.#heldVolumes : undefined);
      if (held === undefined) deliver();
      else held.push(deliver);
    };
    const watcher: Watcher = {
      line: (line) =>
        inOrder(() => {
          const event = line as WatchLine;
          if (ended !== 'broken' && !hides(options, event)) lines.push(Buffer.from(`${JSON.stringify(line)}\n`));
          wakeUp();
        }),
      end: (how) => {
        if (how === 'broken') ended = how; // also what is held is lost
        inOrder(() => {
          ended = how;
          wakeUp();
        });
      },
    };
    const signals = [signal, this.#fence.signal];
    for (const it of signals) it?.addEventListener('abort', wakeUp, { once: true });
    api.watch(info, query, watcher);
    try {
      for (;;) {
        for (const it of signals) it?.throwIfAborted();
        yield* lines.splice(0);
        if (lines.length > 0) continue;
        if (ended !== undefined) return;
        await wake.promise;
        wake = Promise.withResolvers();
      }
    } finally {
      api.unwatch(watcher);
    }
  }
}

// eslint-disable-next-line @typescript-eslint/require-await -- a body is read asynchronously
async function* oneChunk(answer: object): AsyncGenerator<Uint8Array> {
  yield Buffer.from(JSON.stringify(answer));
}
