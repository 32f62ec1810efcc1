/** An API server in memory: the requests that provisioning makes, with optimistic concurrency, lists and watches. */
import type { RequestInfo } from '../../../../../src/kube/api-error.ts';
import { errorFromStatus } from '../../../../../src/kube/error-from-status.ts';
import { type KubeObject, objectKey } from '../../../../../src/kube/kube-object.ts';
import type { RequestOptions } from '../../../../../src/kube/request.ts';

interface Change {
  version: number;
  plural: string;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: KubeObject;
}

/** Of a watch: called for each change. */
export type Watcher = (line: object) => void;

export class Api {
  #version = 1;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #history: Change[] = [];
  readonly #watchers = new Map<Watcher, string>();

  all<T extends KubeObject>(plural: string): T[] {
    return [...(this.#objects.get(plural)?.values() ?? [])] as T[];
  }

  find<T extends KubeObject>(plural: string, key: string): T | undefined {
    return this.#objects.get(plural)?.get(key) as T | undefined;
  }

  put<T extends KubeObject>(plural: string, object: T): T {
    const key = objectKey(object);
    const known = this.find(plural, key);
    const version = ++this.#version;
    const stored = structuredClone(object);
    stored.metadata.uid = known?.metadata.uid ?? `uid-${version}`;
    stored.metadata.resourceVersion = String(version);
    const kind = this.#objects.get(plural) ?? new Map<string, KubeObject>();
    this.#objects.set(plural, kind.set(key, stored));
    this.#publish({ version, plural, type: known === undefined ? 'ADDED' : 'MODIFIED', object: stored });
    return stored;
  }

  /** Changes an object in place. */
  edit<T extends KubeObject>(plural: string, key: string, change: (object: T) => void): void {
    const object = structuredClone(this.find<T>(plural, key));
    if (object === undefined) return;
    change(object);
    this.put(plural, object);
  }

  remove(plural: string, key: string): void {
    const object = this.find(plural, key);
    if (object === undefined) return;
    this.#objects.get(plural)?.delete(key);
    const version = ++this.#version;
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    this.#publish({ version, plural, type: 'DELETED', object: last });
  }

  /** @throws {ApiError} as the client would. */
  request({ info, body, query }: RequestOptions): unknown {
    const { plural } = info.resource;
    const key = objectKey({ metadata: { name: info.name ?? '', namespace: info.namespace } });
    const known = this.find(plural, key);
    if (info.verb === 'list') return this.list(info, query);
    if (info.verb === 'create') {
      if (known !== undefined) throw failure(409, 'AlreadyExists', info);
      return this.put(plural, body as KubeObject);
    }
    if (known === undefined) throw failure(404, 'NotFound', info);
    if (info.verb === 'get') return known;
    if (info.verb === 'update') {
      const { resourceVersion = '' } = (body as KubeObject).metadata;
      if (resourceVersion !== '' && resourceVersion !== known.metadata.resourceVersion)
        throw failure(409, 'Conflict', info);
      return this.put(plural, body as KubeObject);
    }
    if (info.verb === 'delete') {
      this.remove(plural, key);
      return known;
    }
    throw new Error(`not simulated: ${info.verb} ${plural}`);
  }

  list({ resource }: RequestInfo, query: RequestOptions['query'] = {}): object {
    const name = /^metadata\.name=(.*)$/.exec(String(query['fieldSelector'] ?? ''))?.[1];
    const items = this.all(resource.plural).filter(({ metadata }) => name === undefined || metadata.name === name);
    return {
      kind: `${resource.kind}List`,
      apiVersion: 'v1',
      metadata: { resourceVersion: String(this.#version) },
      items,
    };
  }

  /** The lines of a watch from here on, the initial ones included. */
  watch({ resource: { plural, kind } }: RequestInfo, query: RequestOptions['query'] = {}, watcher: Watcher): void {
    if (query['sendInitialEvents'] === true) {
      for (const object of this.all(plural)) watcher({ type: 'ADDED', object: { kind, ...object } });
      const annotations = { 'k8s.io/initial-events-end': 'true' };
      const metadata = { resourceVersion: String(this.#version), annotations };
      watcher({ type: 'BOOKMARK', object: { kind, apiVersion: 'v1', metadata } });
    } else {
      const since = Number(query['resourceVersion'] ?? 0);
      for (const change of this.#history)
        if (change.plural === plural && change.version > since) watcher(lineOf(change));
    }
    this.#watchers.set(watcher, plural);
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  #publish(change: Change): void {
    this.#history.push(change);
    for (const [watcher, plural] of this.#watchers) if (plural === change.plural) watcher(lineOf(change));
  }
}

function lineOf({ type, object }: Change): object {
  return { type, object: structuredClone(object) };
}

function failure(code: number, reason: string, info: RequestInfo): Error {
  const message = `${info.resource.plural} ${info.name ?? ''}: ${reason}`;
  const details = { name: info.name ?? '', kind: info.resource.plural };
  return errorFromStatus({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details }, info);
}
