/** Long texts as a shard stores them: compressed, since a topology of thousands of nodes repeats most of itself. */
import { gunzipSync, gzipSync } from 'node:zlib';

/**
 * The prefix of a compressed text; no JSON begins with it. What follows is gzip in base64: `base64 -d | gunzip` shows the text,
 * and the checksum of gzip reveals damage.
 */
const mark = 'gzip:';
/** Shorter texts, in characters, stay human-readable. */
const minPackedLength = 4096;
/** Max unpacked size, in bytes, so that a few crafted kilobytes cannot exhaust the memory; far more than any plan needs. */
const maxUnpackedBytes = 16 * 1024 * 1024;

/** @param text - JSON. */
export function packText(text: string): string {
  if (text.length < minPackedLength) return text;
  const bytes = Buffer.from(text);
  const packed = mark + gzipSync(bytes).toString('base64');
  return packed.length < bytes.length ? packed : text;
}

/** The text that was packed; one that was not is returned as it is. @throws {Error} for a damaged one. */
export function unpackText(stored: string): string {
  if (!stored.startsWith(mark)) return stored;
  const packed = Buffer.from(stored.slice(mark.length), 'base64');
  return gunzipSync(packed, { maxOutputLength: maxUnpackedBytes }).toString();
}
