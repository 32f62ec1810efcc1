import type { IncomingMessage } from 'node:http';
import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';
import { decodeProtobuf, protobufType } from './protobuf.ts';
import { StatusError } from './status-error.ts';

/** Media types of objects in requests. */
export const objectTypes: readonly string[] = ['application/json', 'application/yaml', protobufType];

const limitBytes = 3 * 1024 * 1024;

/** The bytes of a request's body. @throws {StatusError} `RequestEntityTooLarge` above 3 MiB (CP-3.2). */
export async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limitBytes) {
      throw new StatusError('RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`);
    }
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
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
  const { loadYaml } = await import('@kubernetes/client-node');
  try {
    return loadYaml<unknown>(text);
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
