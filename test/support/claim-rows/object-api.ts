/** Objects as plain JSON over HTTP, on any API server: no client library that converts them. */
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { loadKubeconfig } from '../admin.ts';
import { kinds } from './kinds.ts';
import type { KubeObject, Kind, NewObject, ObjectName } from './row.ts';

export class ObjectApi implements Disposable {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #agent: Agent | HttpAgent;

  constructor(options: { url: string; token?: string | undefined; ca?: string | undefined }) {
    this.#url = options.url;
    this.#headers = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
    const { ca } = options;
    this.#agent = options.url.startsWith('https:')
      ? new Agent({ keepAlive: true, ...(ca !== undefined && { ca }) })
      : new HttpAgent({ keepAlive: true });
  }

  /** As whom a kubeconfig says. */
  static of(kubeconfig: string): ObjectApi {
    const config = loadKubeconfig(kubeconfig);
    const cluster: { server: string; caData?: string } | null = config.getCurrentCluster();
    const ca = cluster?.caData === undefined ? undefined : Buffer.from(cluster.caData, 'base64').toString();
    return new ObjectApi({ url: cluster?.server ?? '', token: config.getCurrentUser()?.token, ca });
  }

  async create(of: Kind, { status, ...object }: NewObject & { metadata: { name: string } }): Promise<KubeObject> {
    const { name, namespace } = object.metadata;
    const { apiVersion, kind } = kinds[of];
    const created = await this.#send('POST', pathOf(of, namespace), { body: { apiVersion, kind, ...object } });
    if (status === undefined) return created;
    return await this.patch({ kind: of, name, ...(namespace !== undefined && { namespace }) }, { status });
  }

  /** A JSON merge patch; of `status` one of its own. */
  async patch(object: ObjectName, change: { status?: object }): Promise<KubeObject> {
    const { status, ...rest } = change;
    const path = pathOf(object.kind, object.namespace, object.name);
    const patched = Object.keys(rest).length === 0 ? undefined : await this.#send('PATCH', path, { body: rest });
    if (status === undefined) return patched ?? (await this.#send('GET', path));
    return await this.#send('PATCH', `${path}/status`, { body: { status } });
  }

  async read({ kind, namespace, name }: ObjectName): Promise<KubeObject | undefined> {
    return await this.#ifFound(this.#send('GET', pathOf(kind, namespace, name)));
  }

  /** Safe to repeat. */
  async remove({ kind, namespace, name }: ObjectName, graceful = false): Promise<void> {
    const body = kind === 'pod' && !graceful ? { gracePeriodSeconds: 0 } : undefined; // no kubelet would confirm its end
    await this.#ifFound(this.#send('DELETE', pathOf(kind, namespace, name), { body }));
  }

  /** As a scheduler places a Pod. */
  async bindPod({ namespace, name }: { namespace: string; name: string }, node: string): Promise<void> {
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    const body = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
    await this.#send('POST', `${pathOf('pod', namespace, name)}/binding`, { body });
  }

  async #ifFound<T>(answer: Promise<T>): Promise<T | undefined> {
    try {
      return await answer;
    } catch (error) {
      if (error instanceof RefusedRequest && error.status === 404) return undefined;
      throw error;
    }
  }

  #send(method: string, path: string, { body }: { body?: object | undefined } = {}): Promise<KubeObject> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const send = this.#url.startsWith('https:') ? httpsRequest : httpRequest;
    const text = body === undefined ? '' : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const headers = { ...this.#headers, 'content-type': type, 'content-length': Buffer.byteLength(text) };
      const sent = send(new URL(path, this.#url), { method, headers, agent: this.#agent }, (response) => {
        let answer = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (answer += chunk));
        response.on('end', () => {
          const status = response.statusCode ?? 0;
          if (status < 300) resolve(JSON.parse(answer) as KubeObject);
          else reject(new RefusedRequest(`${method} ${path}: ${status} ${answer}`, status));
        });
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(text);
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

export class RefusedRequest extends Error {
  override readonly name = 'RefusedRequest';
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

function pathOf(kind: Kind, namespace: string | undefined, name?: string): string {
  const { apiVersion, plural, namespaced } = kinds[kind];
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = namespaced ? `/namespaces/${namespace ?? 'default'}` : '';
  return `${root}${scope}/${plural}${name === undefined ? '' : `/${name}`}`;
}
