/** Reads from the cluster what an explanation needs. What cannot be read is a fact, too. */
import { ApiError, ForbiddenError, isUnservedResource, NotFoundError } from '../kube/client/api-error.ts';
import type { KubeClient, ListOptions } from '../kube/client/kube-client.ts';
import type { KubeObject, ObjectName, Resource } from '../kube/kube-object.ts';

/**
 * - `missing`: it does not exist; `unserved`: nor does its kind.
 * - `unreadable`: `why` names the missing permission, or what went wrong.
 */
export type Reading<T> =
  { kind: 'found'; value: T } | { kind: 'missing'; unserved: boolean } | { kind: 'unreadable'; why: string };

/** What was found; undefined for everything else, also for what was not looked for. */
export function found<T>(reading: Reading<T> | undefined): T | undefined {
  return reading?.kind === 'found' ? reading.value : undefined;
}

/** One attempt for each object; a response that is late fails after the time that the transport gives it. */
export class ClusterReader {
  readonly #client: KubeClient;
  readonly #signal: AbortSignal;

  constructor({ client, signal }: { client: KubeClient; signal: AbortSignal }) {
    this.#client = client;
    this.#signal = signal;
  }

  /** Whether an object exists: only its metadata is requested. */
  exists(resource: Resource, name: ObjectName): Promise<Reading<KubeObject>> {
    return this.get(resource, name, { metadataOnly: true });
  }

  async get<T extends KubeObject>(
    resource: Resource,
    name: ObjectName,
    options: { metadataOnly?: boolean } = {},
  ): Promise<Reading<T>> {
    const where = resource.namespaced ? ` in namespace ${name.namespace ?? ''}` : '';
    const what = `get ${fullName(resource)}${where}`;
    const reading = await this.#read(
      () => this.#client.get<T>(resource, name, { ...options, signal: this.#signal, optional: 'reported' }),
      what,
    );
    const isObject = reading.kind !== 'found' || (reading.value as Partial<T> | undefined)?.metadata !== undefined;
    return isObject ? reading : { kind: 'unreadable', why: `could not ${what}: ${foreign('no object')}` };
  }

  list<T extends KubeObject>(resource: Resource, options: Omit<ListOptions, 'signal'> = {}): Promise<Reading<T[]>> {
    return this.#read(
      () => this.#client.list<T>(resource, { ...options, signal: this.#signal, optional: 'reported' }),
      listText(resource, options),
    );
  }

  /** The objects that `isWanted` selects; all are read, page by page. */
  select<T extends KubeObject>(
    resource: Resource,
    isWanted: (object: T) => boolean,
    options: Omit<ListOptions, 'signal' | 'limit'> = {},
  ): Promise<Reading<T[]>> {
    return this.pick(resource, (object: T) => (isWanted(object) ? object : undefined), options);
  }

  /** What `picked` takes of each object; undefined leaves it out. All are read, page by page. */
  pick<T extends KubeObject, Kept = T>(
    resource: Resource,
    picked: (object: T) => Kept | undefined,
    options: Omit<ListOptions, 'signal' | 'limit'> = {},
  ): Promise<Reading<Kept[]>> {
    return this.#read(
      () => this.#client.select(resource, picked, { ...options, signal: this.#signal, optional: 'reported' }),
      listText(resource, options),
    );
  }

  /** @throws the reason of the signal, and nothing else. */
  async #read<T>(read: () => Promise<T>, what: string): Promise<Reading<T>> {
    try {
      return { kind: 'found', value: await read() };
    } catch (error) {
      this.#signal.throwIfAborted();
      if (error instanceof TypeError) return { kind: 'missing', unserved: false }; // no object can have such a name
      if (error instanceof ApiError && !isOfApiServer(error)) {
        return { kind: 'unreadable', why: `could not ${what}: ${foreign(String(error.code))}` };
      }
      if (error instanceof NotFoundError) return { kind: 'missing', unserved: isUnservedResource(error) };
      if (error instanceof ForbiddenError) return { kind: 'unreadable', why: `the permission to ${what} is missing` };
      return { kind: 'unreadable', why: `could not ${what}: ${(error as Error).message}` };
    }
  }
}

/** Whether the API server sent the error: a proxy in front of it knows neither which objects exist nor who has which permissions. */
function isOfApiServer({ status, message, request }: ApiError): boolean {
  if (status.kind === 'Status') return true;
  return request.resource.group !== '' && message === '404 page not found'; // what it sends for an API group that it does not serve
}

function foreign(body: string): string {
  return `the response (${body}) is not from an API server. Check the server in the kubeconfig, and proxies in front of it`;
}

function listText(resource: Resource, { namespace }: { namespace?: string }): string {
  const where =
    namespace !== undefined ? ` in namespace ${namespace}` : resource.namespaced ? ' in all namespaces' : '';
  return `list ${fullName(resource)}${where}`;
}

function fullName({ plural, group }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}
