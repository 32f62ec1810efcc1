/** An HTTP server with just enough of the Kubernetes API for single objects: stores, versions, conflicts, faults. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomUUID } from 'node:crypto';
import type { KubeObject } from '../../../src/kube/kube-object.ts';

/** An object as it is stored: unknown fields survive. */
export type StoredObject = KubeObject & Record<string, unknown>;

export interface RecordedRequest {
  method: string;
  /** Path without query. */
  path: string;
  query: URLSearchParams;
  body: StoredObject | undefined;
}

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
  readonly requests: RecordedRequest[] = [];
  readonly #objects = new Map<string, StoredObject>();
  readonly #server: Server;
  #faults: Fault[] = [];
  #version = 100;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  static async start(): Promise<ScriptedApiServer> {
    const api = new ScriptedApiServer();
    await new Promise<void>((resolve) => api.#server.listen(0, '127.0.0.1', resolve));
    return api;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #nextVersion(): string {
    this.#version += 1;
    return String(this.#version);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '' } = request;
    const { pathname: path, searchParams: query } = new URL(url, 'http://localhost');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? undefined : (JSON.parse(text) as StoredObject);
    this.requests.push({ method, path, query, body });
    const fault = this.#faults.find((entry) => entry.method === method && entry.path === path && entry.left > 0);
    if (fault !== undefined) {
      fault.left -= 1;
      fault.before?.();
      this.#refuse(response, fault.code, fault.reason, fault.message);
      return;
    }
    if (method === 'GET') this.#get(path, query, response);
    else if (method === 'PUT' && body !== undefined) this.#update(path, body, response);
    else this.#refuse(response, 405, 'MethodNotAllowed', `${method} ${path} is not scripted`);
  }

  #get(path: string, query: URLSearchParams, response: ServerResponse): void {
    const object = this.#objects.get(path);
    if (object !== undefined) {
      send(response, 200, object);
      return;
    }
    const items = [...this.#objects].filter(([key]) => isMemberOf(key, path)).map(([, member]) => member);
    if (items.length > 0 || query.has('limit'))
      send(response, 200, { kind: 'List', apiVersion: 'v1', metadata: {}, items });
    else this.#notFound(path, decodeURIComponent(path.split('/').at(-1) ?? ''), response);
  }

  #update(path: string, body: StoredObject, response: ServerResponse): void {
    const old = this.#objects.get(path);
    const name = path.split('/').at(-1) ?? '';
    if (old === undefined) {
      this.#notFound(path, name, response);
      return;
    }
    if (body.metadata.resourceVersion !== old.metadata.resourceVersion) {
      this.#refuse(response, 409, 'Conflict', conflictMessage(path));
      return;
    }
    const { finalizers, deletionTimestamp } = body.metadata;
    const updated = { ...body, metadata: { ...body.metadata, resourceVersion: this.#nextVersion() } };
    if (deletionTimestamp !== undefined && (finalizers ?? []).length === 0) this.#objects.delete(path);
    else this.#objects.set(path, updated);
    send(response, 200, updated);
  }

  #notFound(path: string, name: string, response: ServerResponse): void {
    this.#refuse(response, 404, 'NotFound', `${qualified(path)} "${name}" not found`, { name });
  }

  #refuse(response: ServerResponse, code: number, reason: string, message: string, details = {}): void {
    send(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details });
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

function send(response: ServerResponse, code: number, body: object): void {
  response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
