import type { Clock } from '../../src/base/clock.ts';
import type { ResourceRef, SandboxClient, SandboxName, SandboxObject, Subscription, WatchEvent } from './client.ts';
import type { EventRecording } from './event-recording.ts';
import type { ObjectRegistry, Target } from './object-registry.ts';
import { bindPod } from './subresources.ts';
import type { RequestLog } from './request-log.ts';
import { groupVersion, type ResourceTypes, type VersionedType } from './resource-type.ts';
import { StatusError } from './status-error.ts';
import type { Store } from './store.ts';

/** What a client of this process is made of. */
export interface InProcessClientOptions {
  readonly user: string;
  readonly store: Store;
  readonly registry: ObjectRegistry;
  readonly types: ResourceTypes;
  readonly clock: Clock;
  readonly requestLog: RequestLog;
  readonly events: EventRecording;
}

/** The API for controllers of this process: no HTTP and no authorisation, everything else as over HTTP. */
export class InProcessClient implements SandboxClient {
  readonly #options: InProcessClientOptions;

  constructor(options: InProcessClientOptions) {
    this.#options = options;
  }

  get(resource: ResourceRef, { namespace = '', name }: SandboxName): SandboxObject | undefined {
    return this.#options.store.get(this.#find(resource).type.storage, namespace, name)?.object;
  }

  list(resource: ResourceRef, { namespace }: { namespace?: string } = {}): SandboxObject[] {
    return this.#options.store.list(this.#find(resource).type.storage, namespace).map(({ object }) => object);
  }

  create(resource: ResourceRef, object: SandboxObject): SandboxObject {
    const of = this.#find(resource);
    const { namespace = '' } = object.metadata;
    return this.#logged('POST', of, { ...object.metadata, name: '' }, '', 201, () => {
      return this.#options.registry.create(of, namespace, object).revision.object;
    });
  }

  update(resource: ResourceRef, object: SandboxObject): SandboxObject {
    const of = this.#find(resource);
    return this.#logged('PUT', of, object.metadata, '', 200, () => {
      return this.#options.registry.update(target(of, object.metadata), object).revision.object;
    });
  }

  updateStatus(resource: ResourceRef, object: SandboxObject): SandboxObject {
    const of = this.#find(resource);
    return this.#logged('PUT', of, object.metadata, 'status', 200, () => {
      return this.#options.registry.update(target(of, object.metadata), object, 'status').revision.object;
    });
  }

  delete(resource: ResourceRef, name: SandboxName, options: { uid?: string; gracePeriodSeconds?: number } = {}): void {
    const of = this.#find(resource);
    this.#logged('DELETE', of, name, '', 200, () => this.#options.registry.delete(target(of, name), options));
  }

  bindPod(pod: SandboxName, node: string): void {
    const of = this.#find({ group: '', version: 'v1', plural: 'pods' });
    const { registry, clock } = this.#options;
    this.#logged('POST', of, pod, 'binding', 201, () => bindPod(registry, target(of, pod), node, clock.wallMs()));
  }

  finalizeNamespace(name: string): void {
    const of = this.#find({ group: '', version: 'v1', plural: 'namespaces' });
    this.#logged('PUT', of, { name }, 'finalize', 200, () => {
      const body = { metadata: { name }, spec: { finalizers: [] } };
      return this.#options.registry.update(target(of, { name }), body, 'finalize');
    });
  }

  recordEvent(
    about: SandboxObject,
    type: 'Normal' | 'Warning',
    reason: string,
    message: string,
    component: string,
  ): void {
    this.#options.events.record(about, type, reason, message, component);
  }

  subscribe(resource: ResourceRef, handler: (event: WatchEvent) => void): Subscription {
    let closed = false;
    let waiting: WatchEvent[] = [];
    const deliver = (): void => {
      const events = waiting;
      waiting = [];
      for (const event of events) if (!closed) handler(event);
    };
    const subscription = this.#options.store.onCommit(this.#find(resource).type.storage, ({ type, revision }) => {
      if (waiting.length === 0) setImmediate(deliver);
      waiting.push({ type, object: revision.object });
    });
    return {
      close: () => {
        closed = true;
        subscription.close();
      },
    };
  }

  #find(resource: ResourceRef): VersionedType {
    const of = this.#options.types.find(resource);
    if (of !== undefined) return of;
    throw new StatusError(
      'NotFound',
      `the server does not serve ${resource.plural} of ${resource.group || 'the core group'}`,
    );
  }

  #logged<Result>(
    method: string,
    of: VersionedType,
    name: SandboxName,
    subresource: string,
    success: number,
    run: () => Result,
  ): Result {
    const { requestLog, clock, user } = this.#options;
    const verbs: Record<string, string> = { POST: 'create', PUT: 'update', DELETE: 'delete' };
    const { plural } = of.type;
    const entry = requestLog.add({
      atMs: clock.monotonicMs(),
      method,
      path: pathOf(of, name, subresource),
      query: '',
      userAgent: '',
      kubectlCommand: '',
      contentType: '',
      hasCredentials: false,
      user,
      verb: verbs[method] ?? '',
      resource: subresource === '' ? plural : `${plural}/${subresource}`,
      status: success,
      durationMs: 0,
      fault: '',
    });
    try {
      return run();
    } catch (error) {
      entry.status = error instanceof StatusError ? error.code : 500;
      throw error;
    }
  }
}

function target(of: VersionedType, { namespace = '', name }: SandboxName): Target {
  return { ...of, namespace, name };
}

function pathOf({ type, version }: VersionedType, { namespace = '', name }: SandboxName, subresource: string): string {
  const root = type.group === '' ? `/api/${version}` : `/apis/${groupVersion(type.group, version)}`;
  const scope = namespace === '' ? [] : ['namespaces', namespace];
  return [root, ...scope, type.plural, name, subresource].filter((part) => part !== '').join('/');
}
