import { gunzipSync } from 'node:zlib';
import type { Dispatcher } from 'undici';

/** A whole response. */
export interface HttpResponse {
  statusCode: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** A request under way. */
export interface Exchange {
  response: Promise<HttpResponse>;
  /** Aborts it with this reason; nothing happens when it has ended. */
  abort: (reason: Error) => void;
}

/**
 * Sends one request and collects its response, which is small. Built on undici's handlers, which cost a fraction of its
 * streams for a short JSON body.
 *
 * @param options.beforeSend - called when the request has a connection: what it returns ends the request, which is then not sent.
 * @param options.onSent - called when the request is sent.
 * @param options.discardResponse - leaves the text of a successful response empty.
 */
export function exchange(
  pool: Dispatcher,
  request: Dispatcher.DispatchOptions,
  {
    beforeSend,
    onSent,
    discardResponse,
  }: { beforeSend: () => Error | undefined; onSent: () => void; discardResponse: boolean },
): Exchange {
  const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
  let controller: Dispatcher.DispatchController | undefined;
  let aborted: Error | undefined;
  let statusCode = 0;
  let headers: HttpResponse['headers'] = {};
  const chunks: Buffer[] = [];
  pool.dispatch(request, {
    onRequestStart: (started) => {
      controller = started;
      aborted ??= beforeSend();
      if (aborted === undefined) onSent();
      else started.abort(aborted);
    },
    onResponseStart: (_controller, code, received) => {
      if (code < 200) return; // informational, the response follows
      statusCode = code;
      headers = received;
    },
    onResponseData: (_controller, chunk) => {
      if (!discardResponse || statusCode >= 300) chunks.push(chunk);
    },
    onResponseEnd: () => {
      try {
        resolve({ statusCode, headers, text: decode(chunks, headers['content-encoding']) });
      } catch (error) {
        reject(error); // the body is not in the encoding of its header
      }
    },
    onResponseError: (_controller, error) => reject(error),
  });
  return {
    response: promise,
    abort: (reason) => {
      aborted ??= reason;
      controller?.abort(reason);
      reject(reason); // also while it still waits for a connection
    },
  };
}

function decode(chunks: Buffer[], encoding: string | string[] | undefined): string {
  const [first, ...more] = chunks;
  const body = first === undefined ? Buffer.alloc(0) : more.length === 0 ? first : Buffer.concat(chunks);
  return (encoding === 'gzip' ? gunzipSync(body) : body).toString('utf8');
}
