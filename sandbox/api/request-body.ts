import type { IncomingMessage } from 'node:http';
import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';
import { decodeProtobuf, protobufType } from './protobuf.ts';
import { StatusError } from './status-error.ts';

/** Media types of objects in requests. */
export const objectTypes: readonly string[] = ['application/json', 'application/yaml', protobufType];

const limitBytes = 3 * 1024 * 1024;

/** The bytes of a request's body. @throws {StatusError} `RequestEntityTooLarge` above 3 MiB. */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= limitBytes) chunks.push(chunk);
    else reject(new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`));
  });
  request.once('end', () =>
    resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
  );
  request.once('error', reject);
  request.once('close', () => reject(new StatusError('BadRequest', 'the body of the request ended early')));
  return promise;
}

/** The media type of a `Content-Type` header, without parameters; JSON if there is none. */
export function mediaType(header: string | undefined): string {
  const type = (header ?? '').split(';')[0]?.trim().toLowerCase();
  return type === undefined || type === '' ? 'application/json' : type;
}

/**
 * The value in a body of one of the accepted media types.
 *
 * @throws {StatusError} `UnsupportedMediaType` for another type, `BadRequest` for text that does not parse.
 */
export async function parseBody(body: Buffer, contentType: string, accepted: readonly string[]): Promise<unknown> {
  if (contentType === protobufType && accepted.includes(protobufType)) return decodeProtobuf(body);
  if (!accepted.includes(contentType)) {
    throw new StatusError(
      'UnsupportedMediaType',
      `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
    );
  }
  const text = body.toString('utf8');
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (contentType.endsWith('yaml')) return await parseYaml(text);
    throw unreadable(error);
  }
}

/** As `parseBody`, for an object. */
export async function parseObject(body: Buffer, contentType: string, accepted: readonly string[]): Promise<JsonObject> {
  const value = await parseBody(body, contentType, accepted);
  if (isObject(value)) return value;
  throw new StatusError('BadRequest', 'the body of the request must be an object');
}

/** Loaded only when a client really sends YAML: kubectl does not. */
async function parseYaml(text: string): Promise<unknown> {
  const { load } = await import('js-yaml');
  try {
    return load(text);
  } catch (error) {
    throw unreadable(error);
  }
}

function unreadable(cause: unknown): StatusError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new StatusError('BadRequest', `the object provided is unrecognized: couldn't parse the body: ${why}`, {
    cause,
  });
}
