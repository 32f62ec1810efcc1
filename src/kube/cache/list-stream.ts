/**
 * Parses the items of a list while the response arrives, so that a long list is never in memory as one text and one tree.
 * Only the boundaries of the items are found here; each item is then parsed by `JSON.parse`.
 */
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { KubeObject } from '../kube-object.ts';

/** Everything of a list but its items. */
export interface ListEnvelope {
  kind?: string;
  apiVersion?: string;
  metadata?: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
}

/** Takes a list as it arrives. */
export interface ListReader {
  /** Each element of `items`, in order, once it is complete. */
  onItem: (item: KubeObject) => void;
  /** Called before the items where the metadata comes before them, as it does from an API server. */
  onMetadata?: ((metadata: NonNullable<ListEnvelope['metadata']>) => void) | undefined;
}

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const itemsKey = '"items"';

/**
 * Reads the items of a list in JSON while the response arrives.
 *
 * @returns everything of the response but its items.
 * @throws {SyntaxError} when the text ends early or is not JSON.
 */
export async function readList(body: AsyncIterable<Uint8Array>, reader: ListReader): Promise<ListEnvelope> {
  const scanner = new ListScanner(reader);
  for await (const chunk of body) {
    if (sliceSpent()) await nextSlice();
    scanner.push(asBuffer(chunk));
  }
  return scanner.end();
}

/** A scanner over bytes: it knows strings and nesting, nothing else of JSON. */
class ListScanner {
  readonly #reader: ListReader;
  /** The text around the items, their array left empty. */
  #outside: Buffer[] = [];
  /** Pieces of the item being read that came with earlier chunks. */
  #item: Buffer[] = [];
  #depth = 0;
  #inString = false;
  /** The last chunk ended, inside a string, on an odd run of backslashes. */
  #escaped = false;
  #inItems = false;
  /** The last string at depth 1, to recognise the key `items`; only kept while short enough to be it. */
  #key = '';
  #stringStart: { pieces: Buffer[]; length: number } | undefined;

  constructor(reader: ListReader) {
    this.#reader = reader;
  }

  push(chunk: Buffer): void {
    let from = 0; // where the part not yet handed on begins
    let at = 0;
    while (at < chunk.length) {
      if (this.#inString) {
        at = this.#skipString(chunk, at);
        continue;
      }
      const byte = chunk[at];
      if (byte === quote) {
        this.#inString = true;
        if (this.#depth === 1) this.#stringStart = { pieces: [], length: 0 };
        at = this.#skipString(chunk, at + 1, at);
        continue;
      }
      if (byte === openBrace || byte === openBracket) {
        this.#depth++;
        if (!this.#inItems && byte === openBracket && this.#depth === 2 && this.#key === itemsKey) {
          this.#outside.push(chunk.subarray(from, at + 1));
          from = at + 1;
          this.#inItems = true;
          this.#announceMetadata();
        } else if (this.#inItems && this.#depth === 3) {
          from = at;
        }
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--;
        if (this.#inItems && this.#depth === 2) {
          this.#finishItem(chunk.subarray(from, at + 1));
          from = at + 1;
        } else if (this.#inItems && this.#depth === 1) {
          this.#inItems = false;
          this.#key = '';
          from = at;
        }
      }
      at++;
    }
    if (!this.#inItems) this.#outside.push(chunk.subarray(from));
    else if (this.#depth >= 3) this.#item.push(chunk.subarray(from));
  }

  end(): ListEnvelope {
    if (this.#depth !== 0 || this.#inString) throw new SyntaxError('the list ends before the response does');
    return JSON.parse(Buffer.concat(this.#outside).toString('utf8')) as ListEnvelope;
  }

  /** The position after the string around `at`; `start` is its opening quote when that is in this chunk. */
  #skipString(chunk: Buffer, at: number, start = at): number {
    let from = at;
    if (this.#escaped) {
      this.#escaped = false;
      from++; // the byte after a backslash that ended the last chunk
    }
    for (;;) {
      const end = chunk.indexOf(quote, from);
      const stop = end === -1 ? chunk.length : end;
      if (backslashesBefore(chunk, stop, from) % 2 === 1) {
        if (end === -1) {
          this.#escaped = true;
          this.#keepKey(chunk.subarray(start));
          return chunk.length;
        }
        from = end + 1;
        continue;
      }
      if (end === -1) {
        this.#keepKey(chunk.subarray(start));
        return chunk.length;
      }
      this.#inString = false;
      this.#keepKey(chunk.subarray(start, end + 1));
      if (this.#stringStart !== undefined) {
        const { pieces, length } = this.#stringStart;
        this.#key = length === itemsKey.length ? Buffer.concat(pieces).toString('latin1') : '';
        this.#stringStart = undefined;
      }
      return end + 1;
    }
  }

  #keepKey(piece: Buffer): void {
    if (this.#stringStart === undefined) return;
    this.#stringStart.length += piece.length;
    if (this.#stringStart.length <= itemsKey.length) this.#stringStart.pieces.push(piece);
  }

  #finishItem(last: Buffer): void {
    const text = this.#item.length === 0 ? last : Buffer.concat([...this.#item, last]);
    this.#item = [];
    this.#reader.onItem(JSON.parse(text.toString('utf8')) as KubeObject);
  }

  #announceMetadata(): void {
    const { onMetadata } = this.#reader;
    if (onMetadata === undefined) return;
    const { metadata } = JSON.parse(`${Buffer.concat(this.#outside).toString('utf8')}]}`) as ListEnvelope;
    if (metadata !== undefined) onMetadata(metadata);
  }
}

function backslashesBefore(chunk: Buffer, end: number, from: number): number {
  let count = 0;
  while (end - 1 - count >= from && chunk[end - 1 - count] === backslash) count++;
  return count;
}

const newline = 0x0a;

/**
 * Splits a body into lines. Bytes are joined before they are decoded, so a character split between two
 * chunks stays whole. A last line without its end is dropped.
 *
 * @param onChunk - called for each chunk before its lines.
 */
export async function* lines(body: AsyncIterable<Uint8Array>, onChunk?: () => void): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of body) {
    onChunk?.();
    const buffer = asBuffer(chunk);
    let start = 0;
    for (let end = buffer.indexOf(newline); end !== -1; end = buffer.indexOf(newline, start)) {
      const rest = buffer.subarray(start, end);
      start = end + 1;
      if (pending.length === 0) {
        if (rest.length > 0) yield rest.toString('utf8');
        continue;
      }
      pending.push(rest);
      const line = Buffer.concat(pending).toString('utf8');
      pending = [];
      yield line;
    }
    if (start < buffer.length) pending.push(buffer.subarray(start));
  }
}

export function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
