import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { ApiServer } from '../../../sandbox/api/api-server.ts';
import type { ApiServerOptions } from '../../../sandbox/api/api-server.ts';

/** A cause in a Status. */
export interface Cause {
  field: string;
  reason: string;
  message: string;
}

/** Metadata of an object or a list. */
export interface Meta {
  name: string;
  namespace: string;
  uid: string;
  generateName: string;
  resourceVersion: string;
  creationTimestamp: string;
  deletionTimestamp: string;
  deletionGracePeriodSeconds: number;
  generation: number;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  finalizers: string[];
  managedFields: unknown[];
  continue: string;
  remainingItemCount: number;
}

/** A group, version, resource or column in an answer. */
export interface Named {
  name: string;
  version: string;
  groupVersion: string;
  preferredVersion: unknown;
  versions: Named[];
  resources: Named[];
  kind: string;
  namespaced: boolean;
  shortNames: string[];
  resource: string;
  subresource: string;
  subresources?: Named[];
}

/**
 * Whatever a server answers: the fields that tests read, of whichever kind it is. A field that is not there is
 * `undefined` all the same, and the assertion on it fails.
 */
export interface Body {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  spec: {
    volumeMode: string;
    persistentVolumeReclaimPolicy: string;
    storageClassName: string;
    nodeName: string;
    resources: { requests: { storage: string } };
  };
  status: {
    phase: string;
    readyToUse: boolean;
    token: string;
    userInfo: { username: string };
    conditions: { type: string; status: string }[];
  };
  data: { value: string };
  items: Body[];
  message: string;
  reason: string;
  code: number;
  details: { name: string; group: string; kind: string; causes: Cause[] };
  count: number;
  note: string;
  deprecatedCount: number;
  involvedObject: { name: string };
  gitVersion: string;
  groups: Named[];
  resources: Named[];
  versions: Named[];
  paths: Record<string, { serverRelativeURL: string; patch: { parameters: Named[] } }>;
  columnDefinitions: Named[];
  rows: { cells: unknown[]; object: Body }[];
}

/** The same, of a list whose items are groups. */
export interface GroupItem {
  metadata: Meta;
  versions: Named[];
}

/** An object to be sent. */
export interface Draft {
  apiVersion?: string;
  kind?: string;
  metadata: Partial<Meta> & { name: string };
  [field: string]: unknown;
}

/** An event of a watch. */
export interface WatchedEvent {
  type: string;
  object: Body;
}

/** An answer with its parsed body. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Empty if the response is not JSON. */
  readonly body: Body;
}

/** What a request may carry. */
export interface CallOptions {
  readonly body?: unknown;
  readonly contentType?: string;
  readonly headers?: Record<string, string>;
}

/** Events of an open watch, one at a time. */
export interface Watch {
  readonly status: number;
  /** The next event, or `undefined` at the clean end of the stream; rejects if the connection is cut. */
  next(): Promise<WatchedEvent | undefined>;
  /** The next event; the end of the stream is a failure. */
  event(): Promise<WatchedEvent>;
  close(): void;
}

/** A server of its own for one test, spoken to over HTTP. */
export interface Api {
  readonly server: ApiServer;
  readonly url: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body: unknown): Promise<Answer>;
  put(path: string, body: unknown): Promise<Answer>;
  patch(path: string, kind: PatchKind, body: unknown): Promise<Answer>;
  delete(path: string, body?: unknown): Promise<Answer>;
  watch(path: string, headers?: Record<string, string>): Promise<Watch>;
}

const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

/** Short names of the patch media types. */
export type PatchKind = keyof typeof patchTypes;

/** Paths that many tests use. */
export const paths = {
  claims: '/api/v1/namespaces/default/persistentvolumeclaims',
  volumes: '/api/v1/persistentvolumes',
  pods: '/api/v1/namespaces/default/pods',
  configMaps: '/api/v1/namespaces/default/configmaps',
  events: '/api/v1/namespaces/default/events',
  classes: '/apis/storage.k8s.io/v1/storageclasses',
  leases: '/apis/coordination.k8s.io/v1/namespaces/default/leases',
  snapshots: '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots',
} as const;

/** Starts a server that ends with the test. */
export async function startApi(t: TestContext, options: ApiServerOptions = {}): Promise<Api> {
  const server = new ApiServer(options);
  const { url } = await server.start();
  const watches = new Set<AbortController>();
  t.after(async () => {
    for (const watch of watches) watch.abort();
    await server.close();
  });
  const call: Api['call'] = async (method, path, { body, contentType = 'application/json', headers = {} } = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        accept: 'application/json',
        ...(body === undefined ? {} : { 'content-type': contentType }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json');
    const parsed = (isJson && text !== '' ? JSON.parse(text) : {}) as Body;
    return { status: response.status, headers: response.headers, text, body: parsed };
  };
  return {
    server,
    url,
    call,
    get: (path, headers) => call('GET', path, headers === undefined ? {} : { headers }),
    post: (path, body) => call('POST', path, { body }),
    put: (path, body) => call('PUT', path, { body }),
    patch: (path, kind, body) => call('PATCH', path, { body, contentType: patchTypes[kind] }),
    delete: (path, body) => call('DELETE', path, body === undefined ? {} : { body }),
    watch: async (path, headers = {}) => {
      const abort = new AbortController();
      watches.add(abort);
      const response = await fetch(url + path, { headers, signal: abort.signal });
      return { status: response.status, ...eventReader(response), close: () => abort.abort() };
    },
  };
}

function eventReader(response: Response): Pick<Watch, 'next' | 'event'> {
  const decoder = new TextDecoder();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let text = '';
  const next = async (): Promise<WatchedEvent | undefined> => {
    for (;;) {
      const end = text.indexOf('\n');
      if (end !== -1) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        return JSON.parse(line) as WatchedEvent;
      }
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += decoder.decode(value, { stream: true });
    }
  };
  return {
    next,
    async event() {
      const event = await next();
      assert.ok(event, 'the watch ended');
      return event;
    },
  };
}

/** A claim that passes all checks, with changes to its spec. */
export function claim(name: string, spec: Record<string, unknown> = {}): Draft {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  };
}

/** A CSI volume that passes all checks, with changes to its spec. */
export function volume(name: string, spec: Record<string, unknown> = {}): Draft {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver: 'x.example.com', volumeHandle: `handle-${name}` },
      ...spec,
    },
  };
}

/** A class of the provisioner `x.example.com`. */
export function storageClass(name: string, more: Record<string, unknown> = {}): Draft {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'x.example.com',
    ...more,
  };
}

/** A ConfigMap with one entry. */
export function configMap(name: string, value = 'a', labels: Record<string, string> = {}): Draft {
  return { metadata: { name, labels }, data: { value } };
}

/** A snapshot of the claim `source`. */
export function snapshot(name: string): Draft {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { name },
    spec: { source: { persistentVolumeClaimName: 'source' } },
  };
}
