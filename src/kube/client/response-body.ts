/** The body of a response: decompressed, read in chunks or whole, parsed. */
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { type RequestInfo, type Status, TransportError } from './api-error.ts';
import { errorFromStatus } from './error-from-status.ts';
import { isProtobuf, readStatus } from '../protobuf/envelope.ts';
import { asTransportError } from './request-failure.ts';

/** The whole body; a Status in protobuf as its JSON. @throws {TransportError} when the connection breaks before the end. */
export async function readText(response: Dispatcher.ResponseData): Promise<string> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of decompressed(response)) chunks.push(chunk as Uint8Array);
  } catch (error) {
    throw asTransportError(error, 'reading the response');
  }
  const bytes = Buffer.concat(chunks);
  if (!isProtobuf(response.headers['content-type'])) return bytes.toString('utf8');
  const status = readStatus(bytes);
  return status === undefined ? '' : JSON.stringify(status);
}

/**
 * The body as it comes.
 *
 * @param signal - of the request: its reason is thrown once it aborts.
 * @param onEnd - called once reading has ended, for any reason.
 * @throws {TransportError} when the connection breaks before the end.
 */
export async function* readChunks(
  response: Dispatcher.ResponseData,
  signal: AbortSignal,
  onEnd: () => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of decompressed(response)) yield chunk as Uint8Array;
  } catch (error) {
    signal.throwIfAborted();
    throw asTransportError(error, 'reading the response');
  } finally {
    onEnd();
    response.body.on('error', () => undefined).destroy();
  }
}

/** A broken connection breaks the result too, which `pipe` alone would not do. */
function decompressed({ headers, body }: Dispatcher.ResponseData): Readable {
  if (headers['content-encoding'] !== 'gzip') return body;
  const gunzip = createGunzip();
  pipeline(body, gunzip, () => undefined); // the reader of the result gets the failure
  return gunzip;
}

/**
 * The object in a successful response.
 *
 * @param options.mayBeEmpty - a response without a body is an empty object, since nobody needs what is in it.
 * @throws {ApiError} for a failure behind a 2xx code, {TransportError} with code `BAD_JSON`.
 */
export function parseResponse<T>(text: string, info: RequestInfo, { mayBeEmpty }: { mayBeEmpty: boolean }): T {
  if (text === '' && mayBeEmpty) return {} as T;
  const parsed = parsedJson(text) as (T & Partial<Status>) | null | undefined;
  if (typeof parsed !== 'object' || parsed === null) {
    const what = `${info.verb} ${info.resource.plural}: the response is ${text === '' ? 'empty' : 'not a JSON object'}`;
    // Without the cause: its message quotes the response, which may be a Secret.
    throw new TransportError(what, { code: 'BAD_JSON' });
  }
  if (parsed.kind === 'Status' && parsed.status !== undefined && parsed.status !== 'Success') {
    throw errorFromStatus(parsed, info);
  }
  return parsed;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
