import { isUtf8 } from 'node:buffer';

/** What a lenient decoder substitutes for bytes that are not UTF-8. */
const replacement = '\uFFFD';
const encodedReplacement = Buffer.from(replacement);

/**
 * Decodes a message and refuses strings that are not UTF-8, as other protobuf implementations do: an id in which bytes
 * were replaced would name no volume of the driver (protobuf, "Scalar Value Types").
 *
 * @throws {Error} `string field contains invalid UTF-8`, and what `decode` throws.
 */
export function decodeStrictly<T>(decode: (body: Buffer) => T, body: Buffer): T {
  const message = decode(body);
  if (!isUtf8(body) && replacements(message) > sentReplacements(body)) {
    throw new Error('string field contains invalid UTF-8');
  }
  return message;
}

/** Replacement characters in all strings of a message. */
function replacements(value: unknown): number {
  if (typeof value === 'string') return value.split(replacement).length - 1;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.entries(value).reduce((sum, [key, each]) => sum + replacements(key) + replacements(each), 0);
}

/** Those that the sender meant. */
function sentReplacements(body: Buffer): number {
  let count = 0;
  for (let at = body.indexOf(encodedReplacement); at >= 0; at = body.indexOf(encodedReplacement, at + 3)) count += 1;
  return count;
}
