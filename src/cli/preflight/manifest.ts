/** Objects as somebody has written them: what is read of them has the type that the Kubernetes API wants, or is an error with its place. */
import { shortValue } from '../../base/short-value.ts';

/** Manifests that cannot be read; the message says where, and what to do. */
export class ManifestError extends Error {
  override readonly name = 'ManifestError';
}

/** Where an object stands. */
export interface ManifestPlace {
  /** As it was given; `standard input` for `-`. */
  file: string;
  /** Number of the document in the file, from 1. */
  document: number;
}

/** One object. */
export interface Manifest {
  place: ManifestPlace;
  kind: string;
  /** Group of its API; empty for the core group. */
  group: string;
  name: string;
  /** As it is written; undefined where it is not. */
  namespace: string | undefined;
  fields: Fields;
}

type Json = Record<string, unknown>;

/** The fields of an object or of a part of it. A field that is null counts as absent, as for the API server. */
export class Fields {
  /** The object, such as `deploy.yaml, document 3 (Deployment kube-system/csi)`. */
  readonly #object: string;
  /** Where in the object it is; empty for the object itself. */
  readonly #path: string;
  readonly #value: Json;

  /** @throws {ManifestError} for a value that is no map. */
  constructor(value: unknown, { object, path = '' }: { object: string; path?: string }) {
    this.#object = object;
    this.#path = path;
    if (!isMap(value)) throw wrongType(object, path, 'a map', value);
    this.#value = value;
  }

  /** @throws {ManifestError}, as all of these for another type. */
  text(name: string): string | undefined {
    const value = this.#get(name);
    if (value === undefined || typeof value === 'string') return value;
    throw wrongType(this.#object, this.#pathOf(name), 'a string', value);
  }

  /** @throws {ManifestError} for a field that is there and is no name of an object. */
  checkName(name: string, isName: (text: string) => boolean): void {
    const value = this.text(name) ?? '';
    if (value !== '' && !isName(value)) throw this.problem(name, notName(value));
  }

  number(name: string): number | undefined {
    const value = this.#get(name);
    if (value === undefined || typeof value === 'number') return value;
    throw wrongType(this.#object, this.#pathOf(name), 'a number', value);
  }

  flag(name: string): boolean | undefined {
    const value = this.#get(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw wrongType(this.#object, this.#pathOf(name), 'true or false', value);
  }

  /** A port or an amount, which may be written either way. */
  textOrNumber(name: string): string | number | undefined {
    const value = this.#get(name);
    if (value === undefined || typeof value === 'string' || typeof value === 'number') return value;
    throw wrongType(this.#object, this.#pathOf(name), 'a string or a number', value);
  }

  part(name: string): Fields | undefined {
    const value = this.#get(name);
    return value === undefined ? undefined : new Fields(value, { object: this.#object, path: this.#pathOf(name) });
  }

  /** A part of parts. */
  partAt(...names: readonly string[]): Fields | undefined {
    return names.reduce<Fields | undefined>((part, name) => part?.part(name), this);
  }

  /** Empty where the field is absent. */
  parts(name: string): Fields[] {
    return this.#list(name).map((value, index) => {
      return new Fields(value, { object: this.#object, path: `${this.#pathOf(name)}[${index}]` });
    });
  }

  /** Empty where the field is absent. */
  texts(name: string): string[] {
    return this.#list(name).map((value, index) => {
      if (typeof value === 'string') return value;
      throw wrongType(this.#object, `${this.#pathOf(name)}[${index}]`, 'a string', value);
    });
  }

  /** A map of strings, such as labels; empty where the field is absent. */
  textMap(name: string): Map<string, string> {
    const part = this.part(name);
    return new Map(part?.names().map((key) => [key, part.text(key) ?? '']));
  }

  has(name: string): boolean {
    return this.#get(name) !== undefined;
  }

  isMap(name: string): boolean {
    return isMap(this.#get(name));
  }

  names(): string[] {
    return Object.keys(this.#value);
  }

  /** Every string in it, however deep, each object once. */
  *everyText(): Generator<string> {
    const seen = new Set<object>();
    const rest: unknown[] = [this.#value];
    while (rest.length > 0) {
      const value = rest.pop();
      if (typeof value === 'string') yield value;
      if (typeof value !== 'object' || value === null || seen.has(value)) continue;
      seen.add(value);
      for (const part of Object.values(value) as unknown[]) rest.push(part);
    }
  }

  /** The error that says that a field is not as it must be. @param problem - such as `must not be empty`. */
  problem(name: string, problem: string): ManifestError {
    return new ManifestError(`${this.#object}: ${this.#pathOf(name)} ${problem}`);
  }

  #get(name: string): unknown {
    return Object.hasOwn(this.#value, name) ? (this.#value[name] ?? undefined) : undefined;
  }

  #list(name: string): unknown[] {
    const value = this.#get(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) throw wrongType(this.#object, this.#pathOf(name), 'a list', value);
    return value;
  }

  #pathOf(name: string): string {
    const simple = /^[A-Za-z_][\w-]*$/.test(name) ? name : `[${JSON.stringify(shortValue(name))}]`;
    if (this.#path === '') return simple;
    return simple.startsWith('[') ? `${this.#path}${simple}` : `${this.#path}.${simple}`;
  }
}

/** What is wrong with a text that should be the name of an object. */
export function notName(text: string): string {
  return `must be the name of an object, not ${JSON.stringify(shortValue(text))}. Names have lower-case letters, digits, - and .; a namespace has no dot`;
}

export function isMap(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value itself is not shown: it may be a secret. */
function wrongType(object: string, path: string, wanted: string, value: unknown): ManifestError {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : isMap(value) ? 'a map' : `a ${typeof value}`;
  const cure = wanted === 'a string' && typeof value !== 'object' ? 'Put it in quotes' : 'Correct it';
  return new ManifestError(
    `${object}: ${path === '' ? 'it' : path} must be ${wanted}, not ${got}. ${cure}; kubectl apply --dry-run=server checks the whole file`,
  );
}
