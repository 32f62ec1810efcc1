import { Pool } from 'undici';
import { type ComparedKind, comparedKinds, type Json, type WriteCase } from './kinds.ts';
import { storedObjects } from './stored-objects.ts';

/** What an API says of a write. */
export interface Verdict {
  /** HTTP status and reason, such as `422 Invalid`, `201` for a success. */
  readonly verdict: string;
  /** The fields of `details.causes`, sorted, each once. */
  readonly fields: readonly string[];
}

interface Answer {
  readonly status: number;
  readonly body: Json;
}

/** An API that has the objects that updates replace. */
export class ApiUnderComparison implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #headers: Record<string, string>;
  readonly #versions = new Map<string, string>();

  private constructor(url: string, options: { ca?: string; token?: string }) {
    const { ca, token } = options;
    this.#pool = new Pool(url, {
      connections: 16,
      maxHeaderSize: 4 * 2 ** 20,
      ...(ca === undefined ? {} : { connect: { ca } }),
    });
    this.#headers = {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
  }

  /** Connects and creates the objects that updates replace. @throws when one of them is refused. */
  static async prepare(url: string, options: { ca?: string; token?: string } = {}): Promise<ApiUnderComparison> {
    const api = new ApiUnderComparison(url, options);
    for (const { kind, object, status } of storedObjects()) await api.#store(kind, object, status);
    return api;
  }

  /** Sends the write as a dry run. */
  async judge({ kind, replaces, strict = false, object }: WriteCase): Promise<Verdict> {
    const query = `?dryRun=All${strict ? '&fieldValidation=Strict' : ''}`;
    const path = comparedKinds[kind].path;
    return verdictOf(
      replaces === undefined
        ? await this.#send('POST', path + query, object)
        : await this.#send('PUT', `${path}/${replaces}${query}`, this.#withVersion(kind, replaces, object)),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.destroy();
  }

  async #store(kind: ComparedKind, object: Json, status: Json | undefined): Promise<void> {
    const path = comparedKinds[kind].path;
    let { body } = await this.#mustSend('POST', path, object);
    const { name } = body['metadata'] as { name: string };
    if (status !== undefined) ({ body } = await this.#mustSend('PUT', `${path}/${name}/status`, { ...body, status }));
    const { resourceVersion } = body['metadata'] as { resourceVersion: string };
    this.#versions.set(`${kind}/${name}`, resourceVersion);
  }

  #withVersion(kind: ComparedKind, name: string, object: Json): Json {
    const { metadata } = object as { metadata?: Json | null };
    if (metadata?.['resourceVersion'] !== 'current') return object;
    return { ...object, metadata: { ...metadata, resourceVersion: this.#versions.get(`${kind}/${name}`) } };
  }

  async #mustSend(method: 'POST' | 'PUT', path: string, object: Json): Promise<Answer> {
    const answer = await this.#send(method, path, object);
    if (answer.status < 300) return answer;
    throw new Error(`${method} ${path}: ${JSON.stringify(answer.body['message'])} for ${JSON.stringify(object)}`);
  }

  async #send(method: 'POST' | 'PUT', path: string, object: Json): Promise<Answer> {
    const body = JSON.stringify(object);
    const response = await this.#pool.request({ method, path, headers: this.#headers, body });
    return { status: response.statusCode, body: (await response.body.json()) as Json };
  }
}

function verdictOf({ status, body }: Answer): Verdict {
  if (status < 300) return { verdict: String(status), fields: [] };
  const { reason, details } = body as { reason?: string; details?: { causes?: { field?: string }[] } };
  const fields = (details?.causes ?? []).map(({ field = '' }) => field);
  return { verdict: `${status} ${reason ?? ''}`.trimEnd(), fields: [...new Set(fields)].toSorted() };
}
