/**
 * Heap snapshots that can be shared: the contents of strings are removed, since secrets and tokens are among them. Names
 * stay: those of classes, functions and properties.
 *
 * The format is V8's, as the developer tools of Chrome read it: one JSON object whose `nodes` and `edges` are flat lists
 * of numbers, some of them indexes into the list `strings` at its end.
 */

/** Replaces the contents of strings. */
const withheld = '(withheld)';

/** The part of the head that describes the layout of the lists. */
interface Layout {
  snapshot: {
    meta: {
      node_fields: string[];
      node_types: [string[], ...unknown[]];
      edge_fields: string[];
      edge_types: [string[], ...unknown[]];
    };
  };
}

/** Nodes that represent strings, with the contents as their name. */
const stringTypes = new Set(['string', 'concatenated string', 'sliced string']);
/** Edges whose name is a number, not an index into `strings`. */
const numberedTypes = new Set(['element', 'hidden']);

/**
 * Removes the contents of strings from a snapshot, as its text arrives.
 *
 * @throws {Error} when the text is no heap snapshot, or ends too early.
 */
export async function* withoutContents(snapshot: AsyncIterable<string>): AsyncGenerator<string> {
  const chunks = snapshot[Symbol.asyncIterator]();
  let text = '';
  const more = async (): Promise<void> => {
    const next = await chunks.next();
    if (next.done === true) throw new Error('the heap snapshot ended too early');
    text += next.value;
  };
  /** Takes everything up to and with the mark from the text. */
  async function* upTo(mark: string): AsyncGenerator<string> {
    for (let at = text.indexOf(mark); ; at = text.indexOf(mark)) {
      if (at >= 0) {
        yield take(at + mark.length);
        return;
      }
      if (text.length > mark.length) yield take(text.length - mark.length);
      await more();
    }
  }
  const take = (length: number): string => {
    const taken = text.slice(0, length);
    text = text.slice(length);
    return taken;
  };
  /** Passes a list of numbers on, up to and with its end, and shows each of them. */
  async function* numbers(each: (value: number) => void): AsyncGenerator<string> {
    let value = -1; // none has begun
    for (;;) {
      for (let index = 0; index < text.length; index += 1) {
        const digit = text.charCodeAt(index) - 48;
        if (digit >= 0 && digit <= 9) {
          value = (value < 0 ? 0 : value * 10) + digit;
          continue;
        }
        if (value >= 0) each(value);
        value = -1;
        if (text[index] === ']') {
          yield take(index + 1);
          return;
        }
      }
      yield take(text.length);
      await more();
    }
  }
  /** Passes the list of strings on without those to withhold. */
  async function* strings(isWithheld: (index: number) => boolean): AsyncGenerator<string> {
    for (let index = 0; ; index += 1) {
      const start = await tokenStart();
      if (text[start] === ']') return;
      const end = await stringEnd(start);
      const taken = take(end);
      yield isWithheld(index) ? `${taken.slice(0, start)}"${withheld}"` : taken;
    }
  }
  const tokenStart = async (): Promise<number> => {
    for (;;) {
      const found = /["\]]/.exec(text);
      if (found !== null) return found.index;
      await more();
    }
  };
  /** Index behind the closing quote. */
  const stringEnd = async (start: number): Promise<number> => {
    for (let index = start + 1; ; index += 1) {
      while (index >= text.length) await more();
      if (text[index] === '"') return index + 1;
      if (text[index] === '\\') index += 1;
    }
  };

  let head = '';
  for await (const part of upTo('"nodes":[')) head += part;
  const { meta } = (JSON.parse(`${head}]}`) as Layout).snapshot;
  yield head;
  const [contents, names] = [new IndexSet(), new IndexSet()];
  const isString = meta.node_types[0].map((type) => stringTypes.has(type));
  yield* numbers(
    recordReader(meta.node_fields, ['type', 'name'], (type, name) => (isString[type] ? contents : names).add(name)),
  );
  yield* upTo('"edges":[');
  const isNumbered = meta.edge_types[0].map((type) => numberedTypes.has(type));
  yield* numbers(
    recordReader(meta.edge_fields, ['type', 'name_or_index'], (type, name) => {
      if (!isNumbered[type]) names.add(name);
    }),
  );
  yield* upTo('"strings":[');
  yield* strings((index) => contents.has(index) && !names.has(index));
  yield text;
  for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
}

/** Calls `each` with two fields of every record of a flat list. */
function recordReader(
  fields: readonly string[],
  [first, second]: readonly [string, string],
  each: (first: number, second: number) => void,
): (value: number) => void {
  const [firstAt, secondAt] = [fields.indexOf(first), fields.indexOf(second)];
  if (firstAt < 0 || secondAt < firstAt) throw new Error(`the heap snapshot has no ${first} before ${second}`);
  let position = 0;
  let held = 0;
  return (value) => {
    if (position === firstAt) held = value;
    else if (position === secondAt) each(held, value);
    position = (position + 1) % fields.length;
  };
}

/** A set of small numbers, a bit each: a snapshot has hundreds of thousands of strings. */
class IndexSet {
  #bits = new Uint8Array(1 << 16);

  add(index: number): void {
    const byte = index >> 3;
    if (byte >= this.#bits.length) {
      const grown = new Uint8Array(Math.max(byte + 1, this.#bits.length * 2));
      grown.set(this.#bits);
      this.#bits = grown;
    }
    this.#bits[byte] = (this.#bits[byte] ?? 0) | (1 << (index & 7));
  }

  has(index: number): boolean {
    return ((this.#bits[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
  }
}
