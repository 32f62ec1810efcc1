import type { Clock } from '../base/clock.ts';
import { ApiError, ExpiredError, TransportError } from './api-error.ts';
import { readList } from './list-stream.ts';
import type { KubeObject, Resource } from './kube-object.ts';
import { resourcePath } from './resource-path.ts';
import type { Transport } from './transport.ts';

/** Max objects in one page. */
export const pageSize = 500;
/** A list without a byte for this long is aborted, in milliseconds. */
const maxSilenceMs = 60_000;

export interface PagedListOptions {
  transport: Transport;
  clock: Clock;
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
  signal: AbortSignal;
}

export interface PagedListResult {
  /** Resource version of the whole list: that of its first page. */
  resourceVersion: string;
  /** The server split the list. */
  paged: boolean;
}

/**
 * Lists a resource page by page, handing out the objects as they arrive. When pages expire meanwhile, everything is listed
 * once more in one response.
 *
 * @throws {ApiError} of the first page or of the second attempt.
 */
export async function pagedList(options: PagedListOptions): Promise<PagedListResult> {
  options.onStart();
  const first = await readPage(options, { resourceVersion: options.resourceVersion, limit: options.limit });
  let token = first.continueToken;
  while (token !== '') {
    try {
      token = (await readPage(options, { continueToken: token, limit: options.limit })).continueToken;
    } catch (error) {
      if (!(error instanceof ExpiredError)) throw error;
      options.onStart();
      const whole = await readPage(options, { resourceVersion: options.resourceVersion, limit: 0 });
      return { resourceVersion: whole.resourceVersion, paged: true };
    }
  }
  return { resourceVersion: first.resourceVersion, paged: first.continueToken !== '' };
}

async function readPage(
  options: PagedListOptions,
  page: { resourceVersion?: string; continueToken?: string; limit: number },
): Promise<{ resourceVersion: string; continueToken: string }> {
  const { transport, clock, resource, namespace, labelSelector, fieldSelector, signal } = options;
  const silence = new AbortController();
  const ended = AbortSignal.any([signal, silence.signal]);
  let lastByteMs = clock.monotonicMs();
  const check = (): void => {
    const inMs = lastByteMs + maxSilenceMs - clock.monotonicMs();
    if (inMs > 0) timer = clock.after(inMs, check);
    else
      silence.abort(
        new TransportError(`no byte of the ${resource.plural} list for ${maxSilenceMs} ms`, { code: 'TIMEOUT' }),
      );
  };
  let timer = clock.after(maxSilenceMs, check);
  try {
    const { body } = await transport.stream({
      method: 'GET',
      path: resourcePath(resource, { namespace }),
      query: {
        limit: page.limit === 0 ? undefined : page.limit,
        continue: page.continueToken,
        resourceVersion: page.resourceVersion === '' ? undefined : page.resourceVersion,
        labelSelector,
        fieldSelector,
      },
      info: { verb: 'list', resource, namespace },
      signal: ended,
      watch: false,
    });
    const observed = (async function* () {
      for await (const chunk of body) {
        lastByteMs = clock.monotonicMs();
        yield chunk;
      }
    })();
    const envelope = await readList(observed, (item) => options.onItem(item as KubeObject));
    if (envelope.kind !== `${resource.kind}List`) throw unexpectedKind(envelope.kind, options);
    return {
      resourceVersion: envelope.metadata?.resourceVersion ?? '',
      continueToken: envelope.metadata?.continue ?? '',
    };
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new TransportError(`the ${resource.plural} list is truncated or garbled`, {
        code: 'BAD_JSON',
        cause: error,
      });
    }
    throw error;
  } finally {
    timer.cancel();
  }
}

/** A proxy may convert lists to tables, whose rows are no objects. */
function unexpectedKind(kind: string | undefined, { resource, namespace }: PagedListOptions): ApiError {
  const message = `expected a ${resource.kind}List, got ${JSON.stringify(kind)}`;
  return new ApiError({ message, reason: 'UnexpectedKind', code: 200 }, { verb: 'list', resource, namespace });
}
