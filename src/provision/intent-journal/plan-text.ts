/** JSON of plans, with the values that many plans share taken out. */
import { hash } from 'node:crypto';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Plan } from '../recoverable.ts';

/** Shorter values are not worth an entry of their own, in characters. */
const minSharedLength = 200;
/** Longer values are taken out at their first appearance, in characters: the next plan will most likely have them too. */
const alwaysSharedLength = 2048;
/** How deep objects are searched for shared values. Arrays are taken as a whole. */
const maxDepth = 5;
/** How many values are remembered to recognize the second plan that has them. */
const maxRemembered = 2000;
/** How many long values the writer keeps packed, and the reader parsed: plans made at the same time share them. */
const maxKept = 16;

/** Where a value was taken out: the path of its fields in the plan, and its key. */
export type Cut = [path: string[], key: string];

interface PlanText {
  /** JSON of the plan; what was taken out is null in it. */
  text: string;
  cuts: Cut[];
  /** What was taken out, as it is stored, by key. */
  shared: Map<string, string>;
}

/** Writes plans, and remembers which of their values it has seen. */
export class PlanWriter {
  /** Values that were seen, with their keys once they are shared; the latest last. */
  readonly #seen = new Map<string, string>();
  /** Long values as they are stored, by key; the latest last. */
  readonly #packed = new Map<string, string>();

  write(plan: Plan): PlanText {
    const found: PlanText = { text: '', cuts: [], shared: new Map() };
    found.text = this.#object(plan, [], found).text;
    return found;
  }

  #object(value: object, path: string[], found: PlanText): { text: string; hasLong: boolean } {
    const fields: string[] = [];
    let hasLong = false;
    for (const [name, child] of Object.entries(value)) {
      const text = JSON.stringify(child) as string | undefined;
      if (text === undefined) continue; // a function or undefined
      const isLong = text.length >= minSharedLength; // else nothing in it is either
      hasLong ||= isLong;
      fields.push(`${JSON.stringify(name)}:${isLong ? this.#long(child, text, [...path, name], found) : text}`);
    }
    return { text: `{${fields.join(',')}}`, hasLong };
  }

  /** The innermost long values are the ones to be taken out. */
  #long(value: unknown, text: string, path: string[], found: PlanText): string {
    if (isPlainObject(value) && path.length < maxDepth) {
      const inner = this.#object(value, path, found);
      if (inner.hasLong) return inner.text;
    }
    const key = this.#keyOf(text);
    if (key === '') return text;
    found.cuts.push([path, key]);
    found.shared.set(key, text.length >= alwaysSharedLength ? this.#pack(key, text) : text);
    return 'null';
  }

  /** Empty for a value that is seen for the first time. */
  #keyOf(text: string): string {
    if (text.length >= alwaysSharedLength) return newKey(text);
    const known = this.#seen.get(text);
    const key = known === undefined ? '' : known || newKey(text);
    keepLatest(this.#seen, text, key, maxRemembered);
    return key;
  }

  #pack(key: string, text: string): string {
    const packed = this.#packed.get(key) ?? packText(text);
    keepLatest(this.#packed, key, packed, maxKept);
    return packed;
  }
}

function newKey(text: string): string {
  return `shared-${hash('sha256', text).slice(0, 32)}`;
}

/** Reads plans. A value that many of them share is parsed once, and is the same object in all of them. */
export class PlanReader {
  /** By key; the latest last. */
  readonly #values = new Map<string, { stored: string; value: unknown }>();

  /**
   * Puts back what was taken out, in place.
   *
   * @throws {Error} when something is missing, or cannot be read.
   */
  restore(plan: Plan, cuts: readonly Cut[], shared: ReadonlyMap<string, string>): void {
    for (const [path, key] of cuts) {
      const stored = shared.get(key);
      let parent: unknown = plan;
      for (const name of path.slice(0, -1)) parent = isPlainObject(parent) ? parent[name] : undefined;
      const last = path.at(-1);
      if (stored === undefined || last === undefined || !isPlainObject(parent)) throw new Error(`${key} is missing`);
      parent[last] = this.#valueOf(key, stored);
    }
  }

  #valueOf(key: string, stored: string): unknown {
    const known = this.#values.get(key);
    const value = known?.stored === stored ? known.value : (JSON.parse(unpackText(stored)) as unknown);
    keepLatest(this.#values, key, { stored, value }, maxKept);
    return value;
  }
}

function keepLatest<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > max) map.delete(map.keys().next().value ?? '');
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !('toJSON' in value);
}

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
