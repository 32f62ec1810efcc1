import type { SandboxObject } from './client.ts';
import { deepFreeze } from './json.ts';

/** One state of one stored object. Immutable; its JSON text is made once, however many readers it has. */
export class Revision {
  readonly rv: number;
  /** `namespace\0name`, which sorts by namespace and then by name. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** Deeply frozen, with `kind` and `apiVersion` of the stored version. */
  readonly object: SandboxObject;
  #body: string | undefined;
  readonly #converted = new Map<string, string>();

  constructor(rv: number, object: SandboxObject) {
    this.rv = rv;
    this.object = deepFreeze(object);
    this.namespace = object.metadata.namespace ?? '';
    this.name = object.metadata.name;
    this.key = storeKey(this.namespace, this.name);
  }

  /** The object's JSON text without the opening brace, `kind` and `apiVersion`: these depend on who reads it. */
  get body(): string {
    return (this.#body ??= bodyOf(this.object));
  }

  /** As `body`, of the object that `convert` makes of this one; kept under `form`. */
  convertedBody(form: string, convert: (object: SandboxObject) => SandboxObject): string {
    let body = this.#converted.get(form);
    if (body === undefined) {
      body = bodyOf(convert(this.object));
      this.#converted.set(form, body);
    }
    return body;
  }
}

/** The key of an object in its store; an empty namespace for cluster-scoped ones. */
export function storeKey(namespace: string, name: string): string {
  return `${namespace}\0${name}`;
}

function bodyOf(object: SandboxObject): string {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = object;
  return JSON.stringify({ metadata, ...rest }).slice(1);
}
