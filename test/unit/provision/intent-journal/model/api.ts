/**
 * An API server in memory: the requests that provisioning makes, with optimistic concurrency, lists and watches. It forgets its
 * history as early as Kubernetes may, sends bookmarks as Kubernetes does, restarts, and goes back to a former state.
 */
import type { RequestInfo } from '../../../../../src/kube/client/api-error.ts';
import { errorFromStatus } from '../../../../../src/kube/client/error-from-status.ts';
import { type KubeObject, objectKey } from '../../../../../src/kube/kube-object.ts';
import type { RequestOptions } from '../../../../../src/kube/client/request.ts';

interface Change {
  version: number;
  atMs: number;
  plural: string;
  type: 'ADDED' | 'MODIFIED' | 'DELETED';
  object: KubeObject;
}

/** An open watch. */
export interface Watcher {
  /** Called for each change. */
  line: (line: object) => void;
  /** The server ends the watch; nothing more comes. `broken`: what was on the way is lost. */
  end: (how: 'in time' | 'broken') => void;
}

interface OpenWatch {
  plural: string;
  kind: string;
  endAtMs: number;
  bookmarkAtMs: number;
}

/** What etcd had at some time. */
export interface Backup {
  version: number;
  objects: Map<string, Map<string, KubeObject>>;
}

/** Changes are remembered at least this long, in milliseconds; this server forgets them then. */
const historyMs = 75_000;
const bookmarkMs = 60_000;
/** A bookmark comes this long before the end of a watch, in milliseconds. */
const lastBookmarkMs = 2000;

export class Api {
  #version = 1;
  #nowMs = 0;
  #uids = 0;
  #objects = new Map<string, Map<string, KubeObject>>();
  #history: Change[] = [];
  /** Watches of a resource from before this version are refused: of the last change that is forgotten. */
  #forgotten = new Map<string, number>();
  /** Watches of any resource from before this version are refused. */
  #oldest = 0;
  readonly #watchers = new Map<Watcher, OpenWatch>();
  readonly #onStored: (plural: string, object: KubeObject) => void;

  /** @param options.onStored - called for each object that is created or changed. */
  constructor({ onStored }: { onStored: (plural: string, object: KubeObject) => void }) {
    this.#onStored = onStored;
  }

  /** The resource version of now. */
  get version(): string {
    return String(this.#version);
  }

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
    const given = plural === 'persistentvolumeclaims' ? object.metadata.uid : undefined;
    stored.metadata.uid = known?.metadata.uid ?? given ?? `uid-${++this.#uids}`;
    stored.metadata.resourceVersion = String(version);
    const kind = this.#objects.get(plural) ?? new Map<string, KubeObject>();
    this.#objects.set(plural, kind.set(key, stored));
    const type = known === undefined ? 'ADDED' : 'MODIFIED';
    this.#onStored(plural, stored);
    this.#publish({ version, atMs: this.#nowMs, plural, type, object: stored });
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
    this.#publish({ version, atMs: this.#nowMs, plural, type: 'DELETED', object: last });
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
    const timeoutMs = Number(query['timeoutSeconds'] ?? 1800) * 1000;
    const endAtMs = this.#nowMs + timeoutMs;
    const bookmarkAtMs = this.#nowMs + Math.min(bookmarkMs, timeoutMs - lastBookmarkMs);
    if (query['sendInitialEvents'] === true) {
      for (const object of this.all(plural)) watcher.line({ type: 'ADDED', object: { kind, ...object } });
      watcher.line(this.#bookmark(kind, { 'k8s.io/initial-events-end': 'true' }));
    } else {
      const since = Number(query['resourceVersion'] ?? 0);
      const oldest = Math.max(this.#oldest, this.#forgotten.get(plural) ?? 0);
      if (since < oldest) {
        watcher.line({ type: 'ERROR', object: expired(since, oldest) });
        watcher.end('in time');
        return;
      }
      for (const change of this.#history)
        if (change.plural === plural && change.version > since) watcher.line(lineOf(change));
    }
    this.#watchers.set(watcher, { plural, kind, endAtMs, bookmarkAtMs });
  }

  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher);
  }

  /** Time passes: history is forgotten, bookmarks are sent, watches end. */
  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    const isForgotten = ({ atMs }: Change): boolean => atMs < nowMs - historyMs;
    for (const change of this.#history.filter(isForgotten)) this.#forgotten.set(change.plural, change.version);
    this.#history = this.#history.filter((change) => !isForgotten(change));
    for (const [watcher, open] of this.#watchers) {
      if (nowMs >= open.bookmarkAtMs) {
        watcher.line(this.#bookmark(open.kind));
        open.bookmarkAtMs = nowMs + bookmarkMs;
      }
      if (nowMs < open.endAtMs) continue;
      this.#watchers.delete(watcher);
      watcher.end('in time');
    }
  }

  /** The server is restarted: it knows no history, and all watches are broken. */
  restart(): void {
    this.#history = [];
    this.#forgotten.clear();
    this.#oldest = this.#version;
    for (const watcher of this.#watchers.keys()) watcher.end('broken');
    this.#watchers.clear();
  }

  /** The number in the latest UID. */
  get lastUid(): number {
    return this.#uids;
  }

  backup(): Backup {
    return { version: this.#version, objects: structuredClone(this.#objects) };
  }

  /** Etcd is restored, and the server restarted. */
  restore({ version, objects }: Backup): void {
    this.#version = version;
    this.#objects = structuredClone(objects);
    this.restart();
  }

  #bookmark(kind: string, annotations?: Record<string, string>): object {
    const metadata = { resourceVersion: String(this.#version), ...(annotations && { annotations }) };
    return { type: 'BOOKMARK', object: { kind, apiVersion: 'v1', metadata } };
  }

  #publish(change: Change): void {
    this.#history.push(change);
    for (const [watcher, { plural }] of this.#watchers) if (plural === change.plural) watcher.line(lineOf(change));
  }
}

const kinds: Record<string, string> = {
  persistentvolumes: 'PersistentVolume',
  persistentvolumeclaims: 'PersistentVolumeClaim',
  storageclasses: 'StorageClass',
  leases: 'Lease',
};

function lineOf({ type, plural, object }: Change): object {
  return { type, object: { ...structuredClone(object), kind: kinds[plural] } };
}

function expired(since: number, oldest: number): object {
  const message = `too old resource version: ${since} (${oldest})`;
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 410, reason: 'Expired', message, metadata: {} };
}

function failure(code: number, reason: string, info: RequestInfo): Error {
  const message = `${info.resource.plural} ${info.name ?? ''}: ${reason}`;
  const details = { name: info.name ?? '', kind: info.resource.plural };
  return errorFromStatus({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details }, info);
}
