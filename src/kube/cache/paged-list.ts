import { asGarbled, ExpiredError, type RequestInfo, unexpectedKind } from '../client/api-error.ts';
import { errorFromStatus } from '../client/error-from-status.ts';
import type { CodedResponse, CodingChoice } from './coding-choice.ts';
import { type ListReader, readList } from './list-stream.ts';
import { type KubeObject, type Resource, resourcePath } from '../kube-object.ts';
import { readProtobufList } from './protobuf-stream.ts';

/** Max objects in one page. */
export const pageSize = 500;
/** A page without a byte for this long is aborted, in milliseconds. */
const maxSilenceMs = 60_000;

export interface PagedListOptions {
  coding: CodingChoice;
  resource: Resource;
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /** Resource version to list at; empty for the most recent, `0` for whatever the server has cached. */
  resourceVersion: string;
  /** Page size; 0 requests everything in one response. */
  limit: number;
  /** Called at the start, and again when pages expired and everything is listed again: earlier items are void. */
  onStart: () => void;
  onItem: (item: KubeObject) => void;
  /** The caller can do without the list, as in `CallOptions`. Default false. */
  optional?: boolean;
  signal: AbortSignal;
}

export interface PagedListResult {
  /** Resource version of the whole list: that of its first page. */
  resourceVersion: string;
  /** The server split the list. */
  paged: boolean;
}

/** Which part of a list: its beginning, or what follows a page. */
interface PagePosition {
  resourceVersion?: string;
  continueToken?: string;
  limit: number;
}

/**
 * Lists a resource page by page, handing out the objects as they arrive. A page is requested as soon as the one before it
 * names it, so that the server works on it meanwhile. When pages expire, everything is listed once more in one response.
 *
 * @throws {ApiError} of the first page or of the second attempt.
 */
export async function pagedList(options: PagedListOptions): Promise<PagedListResult> {
  const { resourceVersion, limit, onStart } = options;
  using list = new OpenList(options);
  onStart();
  const first = await list.read({ resourceVersion, limit });
  let token = first.continueToken;
  while (token !== '') {
    try {
      token = (await list.read({ continueToken: token, limit })).continueToken;
    } catch (error) {
      if (!(error instanceof ExpiredError)) throw error;
      onStart();
      const whole = await list.read({ resourceVersion, limit: 0 });
      return { resourceVersion: whole.resourceVersion, paged: true };
    }
  }
  return { resourceVersion: first.resourceVersion, paged: first.continueToken !== '' };
}

/** The requests of one list: at most the page that is read and the next one. Disposing it ends them. */
class OpenList implements Disposable {
  readonly #options: PagedListOptions;
  readonly #ending = new AbortController();
  readonly #ended: AbortSignal;
  #ahead: { token: string; response: Promise<CodedResponse> } | undefined;

  constructor(options: PagedListOptions) {
    this.#options = options;
    this.#ended = AbortSignal.any([options.signal, this.#ending.signal]);
  }

  /** @throws {ApiError} of the server, {TransportError} when the page is garbled, breaks or goes silent. */
  async read(page: PagePosition): Promise<{ resourceVersion: string; continueToken: string }> {
    const { coding, resource, onItem } = this.#options;
    try {
      const { body, decode } = await this.#response(page);
      const reader: ListReader = {
        onItem,
        onMetadata: ({ continue: token = '' }) => {
          if (token !== '') this.#requestAhead({ continueToken: token, limit: page.limit });
        },
      };
      const kind = `${resource.kind}List`;
      const envelope = await (decode === undefined
        ? readList(body, reader)
        : readProtobufList(body, { ...reader, kind, decode }));
      if (envelope.kind === 'Status') throw errorFromStatus(envelope, this.#info); // a failure behind a 200
      if (envelope.kind !== kind) throw unexpectedKind(envelope.kind, kind, this.#info); // such as a table
      const { resourceVersion = '', continue: continueToken = '' } = envelope.metadata ?? {};
      return { resourceVersion, continueToken };
    } catch (failure) {
      const error = asGarbled(failure, `the ${resource.plural} list`);
      coding.failed(error, { info: this.#info });
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#ending.abort(new Error('the list has ended'));
    void this.#ahead?.response.then(discard).catch(() => undefined);
  }

  get #info(): RequestInfo {
    const { resource, namespace, optional } = this.#options;
    return { verb: 'list', resource, namespace, optional };
  }

  #response(page: PagePosition): Promise<CodedResponse> {
    const ahead = this.#ahead;
    this.#ahead = undefined;
    return ahead !== undefined && ahead.token === page.continueToken ? ahead.response : this.#request(page);
  }

  #requestAhead(page: PagePosition & { continueToken: string }): void {
    const response = this.#request(page);
    response.catch(() => undefined); // thrown when the page is read
    this.#ahead = { token: page.continueToken, response };
  }

  #request(page: PagePosition): Promise<CodedResponse> {
    const { coding, resource, namespace, labelSelector, fieldSelector } = this.#options;
    return coding.stream({
      method: 'GET',
      path: resourcePath(resource, { namespace }),
      query: {
        limit: page.limit === 0 ? undefined : page.limit,
        continue: page.continueToken,
        resourceVersion: page.resourceVersion === '' ? undefined : page.resourceVersion,
        labelSelector,
        fieldSelector,
      },
      info: this.#info,
      signal: this.#ended,
      watch: false,
      maxSilenceMs,
    });
  }
}

/** Ends a response that nobody reads, whose signal has aborted. */
async function discard({ body }: CodedResponse): Promise<void> {
  for await (const _chunk of body) return;
}
