/** An HTTP server with just enough of the Kubernetes API for single objects: stores, versions, conflicts, faults. */
import { randomUUID } from 'node:crypto';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { type ScriptedReply, type ScriptedRequest, ScriptedServer } from './scripted-server.ts';

/** An object as it is stored: unknown fields survive. */
export type StoredObject = KubeObject & Record<string, unknown>;

interface Fault {
  method: string;
  path: string;
  code: number;
  reason: string;
  message: string;
  /** Requests it still answers. */
  left: number;
  before: (() => void) | undefined;
}

/** Answers single-object requests from memory; what it never heard of is NotFound. */
export class ScriptedApiServer implements AsyncDisposable {
  readonly #objects = new Map<string, StoredObject>();
  readonly #server: ScriptedServer;
  #faults: Fault[] = [];
  #version = 100;

  private constructor(server: ScriptedServer) {
    this.#server = server;
    server.otherwise((reply, request) => this.#serve(reply, request));
  }

  static async start(): Promise<ScriptedApiServer> {
    return new ScriptedApiServer(await ScriptedServer.start());
  }

  get url(): string {
    return this.#server.url;
  }

  get requests(): ScriptedRequest[] {
    return this.#server.requests;
  }

  /** Puts an object at a path such as `/api/v1/namespaces/ns1/secrets/s`, in the place of an earlier one. */
  put<T extends KubeObject>(path: string, object: T): StoredObject {
    const { uid = randomUUID() } = object.metadata;
    const metadata = { ...object.metadata, uid, resourceVersion: this.#nextVersion() };
    const stored = { ...object, metadata } as StoredObject;
    this.#objects.set(path, stored);
    return stored;
  }

  get(path: string): StoredObject | undefined {
    return this.#objects.get(path);
  }

  remove(path: string): void {
    this.#objects.delete(path);
  }

  /**
   * Answers the next requests for a path with a failure.
   *
   * @param fault.before - runs first: to change what another client would have changed in the meantime.
   */
  fail(fault: {
    method: string;
    path: string;
    code: number;
    reason: string;
    message: string;
    times?: number;
    before?: () => void;
  }): void {
    this.#faults.push({ before: undefined, ...fault, left: fault.times ?? 1 });
  }

  /** Methods and paths in the order they came, such as `GET /api/v1/...`. */
  get log(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }

  #nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }

  #serve(reply: ScriptedReply, { method, path, query, body }: ScriptedRequest): void {
    const fault = this.#faults.find((entry) => entry.method === method && entry.path === path && entry.left > 0);
    if (fault !== undefined) {
      fault.left -= 1;
      fault.before?.();
      reply.status(fault.code, fault.reason, { message: fault.message });
      return;
    }
    if (method === 'GET') this.#get(path, query, reply);
    else if (method === 'PUT' && body !== undefined) this.#update(path, body as StoredObject, reply);
    else reply.status(405, 'MethodNotAllowed', { message: `${method} ${path} is not scripted` });
  }

  #get(path: string, query: URLSearchParams, reply: ScriptedReply): void {
    const object = this.#objects.get(path);
    if (object !== undefined) {
      reply.json(200, object);
      return;
    }
    const items = [...this.#objects].filter(([key]) => isMemberOf(key, path)).map(([, member]) => member);
    if (items.length > 0 || query.has('limit'))
      reply.json(200, { kind: 'List', apiVersion: 'v1', metadata: {}, items });
    else this.#notFound(path, decodeURIComponent(path.split('/').at(-1) ?? ''), reply);
  }

  #update(path: string, body: StoredObject, reply: ScriptedReply): void {
    const old = this.#objects.get(path);
    const name = path.split('/').at(-1) ?? '';
    if (old === undefined) {
      this.#notFound(path, name, reply);
      return;
    }
    if (body.metadata.resourceVersion !== old.metadata.resourceVersion) {
      reply.status(409, 'Conflict', { message: conflictMessage(path) });
      return;
    }
    const { finalizers, deletionTimestamp } = body.metadata;
    const updated = { ...body, metadata: { ...body.metadata, resourceVersion: this.#nextVersion() } };
    if (deletionTimestamp !== undefined && (finalizers ?? []).length === 0) this.#objects.delete(path);
    else this.#objects.set(path, updated);
    reply.json(200, updated);
  }

  #notFound(path: string, name: string, reply: ScriptedReply): void {
    reply.status(404, 'NotFound', { message: `${qualified(path)} "${name}" not found`, details: { name } });
  }
}

/** What the real server says when an object changed. */
export function conflictMessage(path: string): string {
  const name = path.split('/').at(-1) ?? '';
  return `Operation cannot be fulfilled on ${qualified(path)} "${name}": the object has been modified; please apply your changes to the latest version and try again`;
}

/** `plural` or `plural.group` of the object at a path, as in the server's messages. */
function qualified(path: string): string {
  const parts = path.split('/');
  const plural = parts.at(-2) ?? '';
  return parts[1] === 'apis' ? `${plural}.${parts[2] ?? ''}` : plural;
}

/** Whether `path`, namespaced or for all namespaces, lists the object at `key`. */
function isMemberOf(key: string, path: string): boolean {
  const collection = key.slice(0, key.lastIndexOf('/'));
  return collection === path || collection.replace(/\/namespaces\/[^/]+/, '') === path;
}
