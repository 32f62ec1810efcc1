/** As much of a Kubernetes client as the demo needs, over plain HTTP to the sandbox. */

/** An object of the API as JSON. */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string };
  [field: string]: unknown;
}

export type Kind =
  'namespaces' | 'secrets' | 'persistentvolumeclaims' | 'persistentvolumes' | 'pods' | 'events' | 'storageclasses';

export class KubeApi {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  create(kind: Kind, object: ApiObject): Promise<ApiObject> {
    return this.#send<ApiObject>('POST', this.#path(kind, object.metadata.namespace), object);
  }

  /** Undefined when it is not there. */
  async get<T = ApiObject>(kind: Kind, name: string, namespace?: string): Promise<T | undefined> {
    const response = await fetch(`${this.#url}${this.#path(kind, namespace)}/${name}`);
    if (response.status === 404) return undefined;
    return this.#read<T>(response);
  }

  async list<T = ApiObject>(kind: Kind, namespace?: string): Promise<T[]> {
    return (await this.#send<{ items: T[] }>('GET', this.#path(kind, namespace))).items;
  }

  async delete(kind: Kind, name: string, namespace?: string): Promise<void> {
    await this.#send('DELETE', `${this.#path(kind, namespace)}/${name}`);
  }

  #path(kind: Kind, namespace?: string): string {
    const root = kind === 'storageclasses' ? '/apis/storage.k8s.io/v1' : '/api/v1';
    return namespace === undefined ? `${root}/${kind}` : `${root}/namespaces/${namespace}/${kind}`;
  }

  async #send<T>(method: string, path: string, body?: object): Promise<T> {
    const response = await fetch(this.#url + path, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return this.#read<T>(response);
  }

  async #read<T>(response: Response): Promise<T> {
    const body = (await response.json()) as T & { message?: string };
    if (!response.ok) throw new Error(`${response.url}: ${body.message ?? response.status}`);
    return body;
  }
}
