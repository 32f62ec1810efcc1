/** A transport to a scripted API server, under a clock that the test moves. */
import { Credentials } from '../../../src/kube/credentials/credentials.ts';
import { Informer, type InformerOptions, Tombstone } from '../../../src/kube/cache/informer.ts';
import { loadKubeConfig } from '../../../src/kube/credentials/kube-config.ts';
import { KubeClient } from '../../../src/kube/client/kube-client.ts';
import { type KubeObject, objectKey, type Resource } from '../../../src/kube/kube-object.ts';
import type { TokenBucket } from '../../../src/kube/client/token-bucket.ts';
import type { RequestObservation } from '../../../src/kube/client/request.ts';
import { Transport, type TransportOptions } from '../../../src/kube/client/transport.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { type RequestMatch, type ScriptedReply, ScriptedServer } from '../../support/fakes/scripted-server.ts';

export const configMaps: Resource = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
export const path = '/api/v1/configmaps';

/** Requests by what they are for. */
export const comparisons: RequestMatch = { query: { watch: undefined, limit: '1' } };
export const lists: RequestMatch = { path, query: { watch: undefined }, except: comparisons };
export const watches: RequestMatch = { path, query: { watch: 'true', sendInitialEvents: undefined } };
export const streams: RequestMatch = { path, query: { watch: 'true', sendInitialEvents: 'true' } };

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

export function configMap(
  name: string,
  version: number,
  data?: Record<string, string>,
  uid = `uid-${name}`,
): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'ns', name, uid, resourceVersion: String(version) },
    ...(data && { data }),
  };
}

export function listOf(items: object[], version: number, token?: string): object {
  const metadata = { resourceVersion: String(version), ...(token !== undefined && { continue: token }) };
  return { kind: 'ConfigMapList', apiVersion: 'v1', metadata, items };
}

/** A bookmark, or the one that ends the initial events. */
export function bookmark(version: number, options: { end?: boolean } = {}): object {
  const annotations = options.end === true ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
  return { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: String(version), ...annotations } };
}

/** An answer that never comes, as from a connection that is half open. */
export const nothing = (): void => undefined;

/** A watch that stays open and says nothing until told. */
export const quiet = (reply: ScriptedReply): void => void reply.open();

export class Rig implements AsyncDisposable {
  readonly server: ScriptedServer;
  readonly clock: ManualClock;
  readonly log: LogLine[] = [];
  readonly observations: RequestObservation[] = [];
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly client: KubeClient;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];
  /** What random numbers are until changed: pauses then have their shortest length. */
  random = 0;

  private constructor(server: ScriptedServer, clock: ManualClock, rateLimit: TokenBucket | undefined) {
    this.server = server;
    this.clock = clock;
    const logger = recordedLogger(this.log);
    this.credentials = new Credentials({
      load: () => loadKubeConfig({ master: server.url, environment: {} }),
      clock,
      logger,
    });
    this.transport = this.newTransport({ rateLimit });
    this.client = new KubeClient({ transport: this.transport, fieldManager: 'test' });
  }

  static async start(options: { rateLimit?: (clock: ManualClock) => TokenBucket } = {}): Promise<Rig> {
    const clock = new ManualClock({ awaitsResponses: false });
    const server = await ScriptedServer.start({ now: () => clock.monotonicMs() });
    server.always(comparisons, (reply) => reply.json(200, listOf([], Number.MAX_SAFE_INTEGER)));
    return new Rig(server, clock, options.rateLimit?.(clock));
  }

  newTransport(options: Partial<TransportOptions> = {}): Transport {
    return new Transport({
      credentials: this.credentials,
      userAgent: 'test',
      clock: this.clock,
      logger: recordedLogger(this.log),
      onRequest: (observation) => this.observations.push(observation),
      ...options,
    });
  }

  /** An informer of config maps that runs until the rig ends; classic lists unless told otherwise. */
  informer(options: Partial<InformerOptions<ConfigMap>> = {}): Informer<ConfigMap> {
    const informer = this.newInformer(options);
    this.#running.push(informer.run(this.#stop.signal));
    return informer;
  }

  newInformer(options: Partial<InformerOptions<ConfigMap>> = {}): Informer<ConfigMap> {
    return new Informer<ConfigMap>({
      transport: this.transport,
      resource: configMaps,
      transform: (object) => object,
      clock: this.clock,
      random: () => this.random,
      logger: recordedLogger(this.log),
      watchList: 'off',
      ...options,
    });
  }

  /** Times between neighbouring requests. */
  gapsMs(match: RequestMatch): number[] {
    const times = this.server.matching(match).map(({ atMs }) => atMs);
    return times.slice(1).map((atMs, i) => atMs - (times[i] ?? 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    await Promise.all(this.#running);
    await this.transport[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }
}

/** What a handler hears, one short line each. */
export function heard(informer: Informer<ConfigMap>): string[] {
  const calls: string[] = [];
  informer.addHandler({
    onAdd: (object, isInInitialList) => calls.push(`add ${short(object)}${isInInitialList ? ' initial' : ''}`),
    onUpdate: (old, object) => calls.push(`update ${short(old)} -> ${short(object)}`),
    onDelete: (object) =>
      calls.push(object instanceof Tombstone ? `tombstone ${object.key}` : `delete ${short(object)}`),
  });
  return calls;
}

export function contents(informer: Informer<ConfigMap>): string[] {
  return [...informer.list()].map(short).sort();
}

function short(object: ConfigMap): string {
  return `${objectKey(object)}@${object.metadata.resourceVersion ?? ''}`;
}
