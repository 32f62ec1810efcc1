/** Single requests to the API: one object in, one object out. Lists and watches of caches belong to the reflector. */
import { allOf, type Permit } from '../../base/permit.ts';
import { ExpiredError, type RequestInfo, unexpectedKind } from './api-error.ts';
import { isReduced, type KubeObject, objectKey, type ObjectName, type Resource, resourcePath } from '../kube-object.ts';
import type { RequestOptions } from './request.ts';
import type { Transport } from './transport.ts';

/** Options of every call. */
export interface CallOptions {
  /** Ends the wait for the response; the outcome of a write is then unknown. */
  signal?: AbortSignal | undefined;
  /**
   * The caller can do without the response: a missing permission is logged once, as a warning; `reported`: not at all, as
   * the caller reports it.
   */
  optional?: boolean | 'reported' | undefined;
  /**
   * For a request that another API server behind the same address may respond differently: a connection that is kept alive leads
   * to the server that it once reached. Not for lists and creates. Default false.
   */
  newConnection?: boolean | undefined;
  /** Needed for a write beside that of the client. Default: none is. */
  permit?: Permit | undefined;
  /** As of `RequestOptions`. */
  yieldsUntilMs?: (() => number) | undefined;
  /** As of `RequestOptions`. */
  waitsForNone?: boolean | undefined;
  /** As of `RequestOptions`, for writes. */
  recheck?: (() => void) | undefined;
}

/** The format of a patch (Kubernetes API concepts, "Patch"): JSON merge, strategic merge, JSON patch. */
export type PatchType = 'merge' | 'strategic' | 'json';

const patchContentType: Record<PatchType, string> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
};

/** What of an object to read. */
export interface GetOptions extends CallOptions {
  /** Only its metadata is sent (Kubernetes API concepts, "Receiving resources as metadata"): of a Secret no content. */
  metadataOnly?: boolean;
}

const metadataForm = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';

/** Which objects to list. */
export interface ListOptions extends CallOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Max objects; further ones are left out. */
  limit?: number;
}

/** Objects of a page of which few are wanted: few requests, and a page of objects of usual size is a few MB. */
const selectedPageSize = 2000;

interface ListResponse<T> {
  kind?: string;
  metadata?: { continue?: string; resourceVersion?: string };
  items?: T[] | null;
}

interface ListPage<T> {
  items: T[];
  /** Where the next page begins; undefined: this is the last one. */
  next: string | undefined;
  /** At which it was read; empty where the server names none. */
  resourceVersion: string;
}

/** Max length of a field manager in the API server. */
export const maxFieldManagerLength = 128;

/** Typed calls over a transport. Every method throws `ApiError` (or a subclass) and `TransportError`. */
export class KubeClient {
  readonly #transport: Transport;
  readonly #fieldManager: string;
  readonly #permit: Permit | undefined;

  /**
   * @param options.fieldManager - the program that the server records as the author of writes, in `managedFields`: 1 to
   * 128 printable characters, the same in all its versions.
   * @param options.permit - needed for each write: one that is not valid has the write wait. Default: none is needed.
   * @throws {TypeError} for another field manager, which the server would refuse at each write.
   */
  constructor({
    transport,
    fieldManager,
    permit,
  }: {
    transport: Transport;
    fieldManager: string;
    permit?: Permit | undefined;
  }) {
    if (
      fieldManager === '' ||
      fieldManager.length > maxFieldManagerLength ||
      /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(fieldManager)
    ) {
      throw new TypeError(
        `fieldManager must have 1 to ${maxFieldManagerLength} printable characters, got ${JSON.stringify(fieldManager)}`,
      );
    }
    this.#transport = transport;
    this.#fieldManager = fieldManager;
    this.#permit = permit;
  }

  /** Aborted once the transport is fenced: no request leaves the process any more. */
  get fenced(): AbortSignal {
    return this.#transport.fenced;
  }

  /** One object, read live. @throws {NotFoundError} when it does not exist. */
  get<T extends KubeObject>(resource: Resource, name: ObjectName, options: GetOptions = {}): Promise<T> {
    return this.#send<T>('GET', 'get', resource, name, options);
  }

  /** Objects of one namespace or of all, read live and at once: for small lists; caches use the reflector. */
  async list<T extends KubeObject>(resource: Resource, options: ListOptions = {}): Promise<T[]> {
    return (await this.#listPage<T>(resource, options)).items;
  }

  /** As `list`, with the resource version at which the objects were read: everything older is in them. */
  async listWithVersion<T extends KubeObject>(
    resource: Resource,
    options: ListOptions = {},
  ): Promise<{ items: T[]; resourceVersion: string }> {
    return this.#listPage<T>(resource, options);
  }

  /**
   * What `pick` keeps of objects that are read live in pages, of which one at a time is in memory (Kubernetes page "API
   * Concepts", "Retrieving large results sets in chunks"). When the API server does not keep the pages long enough, usually
   * five minutes, everything is listed once more, in one response.
   *
   * @param pick - what to keep of an object; undefined: nothing. Called again for each object when the list starts again.
   */
  async select<T extends KubeObject, Kept>(
    resource: Resource,
    pick: (object: T) => Kept | undefined,
    options: Omit<ListOptions, 'limit'> = {},
  ): Promise<Kept[]> {
    try {
      return await this.#pickFromPages(resource, pick, { ...options, limit: selectedPageSize });
    } catch (error) {
      if (!(error instanceof ExpiredError)) throw error;
      return await this.#pickFromPages(resource, pick, options);
    }
  }

  async #pickFromPages<T extends KubeObject, Kept>(
    resource: Resource,
    pick: (object: T) => Kept | undefined,
    options: ListOptions,
  ): Promise<Kept[]> {
    const kept: Kept[] = [];
    for (let token: string | undefined = ''; token !== undefined;) {
      const page: ListPage<T> = await this.#listPage<T>(resource, {
        ...options,
        ...(token !== '' && { continue: token }),
      });
      for (const item of page.items) {
        const wanted = pick(item);
        if (wanted !== undefined) kept.push(wanted);
      }
      token = page.next;
    }
    return kept;
  }

  async #listPage<T extends KubeObject>(
    resource: Resource,
    options: ListOptions & { continue?: string },
  ): Promise<ListPage<T>> {
    const { namespace, signal, optional, labelSelector, fieldSelector, limit, continue: token } = options;
    const info: RequestInfo = { verb: 'list', resource, namespace, optional };
    const response = await this.#transport.request<ListResponse<T>>({
      method: 'GET',
      path: resourcePath(resource, { namespace }),
      query: { labelSelector, fieldSelector, limit, continue: token },
      info,
      signal,
    });
    const kind = `${resource.kind}List`;
    if (response.kind !== kind) throw unexpectedKind(response.kind, kind, info); // without items it would pass for an empty list
    const { continue: next = '', resourceVersion = '' } = response.metadata ?? {};
    return { items: response.items ?? [], next: next || undefined, resourceVersion };
  }

  /** @throws {AlreadyExistsError} when the name is taken, also by an earlier attempt whose response was lost. */
  create<T extends KubeObject>(resource: Resource, object: T, options: CallOptions = {}): Promise<T> {
    return this.#send<T>('POST', 'create', resource, object.metadata, options, object);
  }

  /**
   * As `create`, for objects that nothing depends on: the response is not decoded, so that whatever comes with a code for
   * success counts as one.
   */
  async createUnread(resource: Resource, object: KubeObject, options: CallOptions = {}): Promise<undefined> {
    await this.#send('POST', 'create', resource, object.metadata, { ...options, discardResponse: true }, object);
  }

  /**
   * Replaces the object.
   *
   * @throws {ConflictError} when it changed since the resource version in it, {TypeError} before anything is sent when
   * it is a cached form that lacks parts: read it live, or patch.
   */
  update<T extends KubeObject>(
    resource: Resource,
    object: T,
    options: CallOptions & { subresource?: string } = {},
  ): Promise<T> {
    if (isReduced(object)) {
      throw new TypeError(`${resource.plural} ${objectKey(object)}: a reduced cached object must not be written back`);
    }
    return this.#send<T>('PUT', 'update', resource, object.metadata, options, object);
  }

  /** Changes part of an object; a `metadata.resourceVersion` inside makes it conditional. */
  patch<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    patch: { type: PatchType; body: unknown },
    options: CallOptions & { subresource?: string } = {},
  ): Promise<T> {
    return this.#send<T>('PATCH', 'patch', resource, name, options, patch.body, patchContentType[patch.type]);
  }

  /** Deletes one object. The response may still contain it when it has finalizers. */
  async delete(
    resource: Resource,
    name: ObjectName,
    options: CallOptions & { preconditions?: { uid?: string; resourceVersion?: string } } = {},
  ): Promise<void> {
    const body =
      options.preconditions === undefined
        ? undefined
        : { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: options.preconditions };
    await this.#send('DELETE', 'delete', resource, name, options, body);
  }

  #permitOf({ permit }: CallOptions): Permit | undefined {
    const permits = [this.#permit, permit].filter((each) => each !== undefined);
    return permits.length > 1 ? allOf(permits) : permits[0];
  }

  /** Any path of the API, such as a discovery document. */
  raw<T>(path: string, options: CallOptions = {}): Promise<T> {
    const resource: Resource = { group: '', version: '', plural: path, kind: '', namespaced: false };
    const { signal, newConnection } = options;
    return this.#transport.request<T>({ method: 'GET', path, info: { verb: 'get', resource }, signal, newConnection });
  }

  #send<T>(
    method: RequestOptions['method'],
    verb: string,
    resource: Resource,
    { name, namespace }: ObjectName,
    options: GetOptions & { subresource?: string; discardResponse?: boolean },
    body?: unknown,
    contentType?: string,
  ): Promise<T> {
    const where = resource.namespaced ? (namespace ?? '') : undefined;
    return this.#transport.request<T>({
      method,
      path: resourcePath(resource, {
        namespace: where,
        name: method === 'POST' ? undefined : name,
        subresource: options.subresource,
        required: true,
      }),
      query: method === 'GET' || method === 'DELETE' ? {} : { fieldManager: this.#fieldManager },
      body,
      contentType,
      accept: options.metadataOnly === true ? metadataForm : undefined,
      info: { verb, resource, namespace: where, name, subresource: options.subresource, optional: options.optional },
      signal: options.signal,
      discardResponse: options.discardResponse,
      newConnection: options.newConnection,
      yieldsUntilMs: options.yieldsUntilMs,
      waitsForNone: options.waitsForNone,
      permit: method === 'GET' ? undefined : this.#permitOf(options),
      recheck: method === 'GET' ? undefined : options.recheck,
    });
  }
}
