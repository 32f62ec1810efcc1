import { copyJson, isObject, jsonEqual, type JsonObject, setField } from './json.ts';
import { StatusError } from './status-error.ts';

const operationLimit = 10_000;

interface Location {
  readonly parent: unknown;
  readonly field: string;
}

/**
 * Applies an RFC 6902 patch to a copy of `target`.
 *
 * @throws {StatusError} `BadRequest` for what is no JSON patch, `RequestEntityTooLarge` for more than 10 000
 *   operations, `Invalid` for one that does not apply.
 */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new StatusError('BadRequest', 'a JSON patch must be an array of operations');
  if (patch.length > operationLimit) {
    throw new StatusError(
      'RequestEntityTooLarge',
      `The allowed maximum operations in a JSON patch is ${operationLimit}, got ${patch.length}`,
    );
  }
  const document = { root: copyJson(target) };
  for (const operation of patch as unknown[]) {
    if (!isObject(operation) || typeof operation['op'] !== 'string' || typeof operation['path'] !== 'string') {
      throw new StatusError('BadRequest', 'each operation of a JSON patch needs op and path');
    }
    apply(document, operation);
  }
  return document.root;
}

function apply(document: JsonObject, operation: JsonObject): void {
  const location = locate(document, String(operation['path']));
  switch (operation['op']) {
    case 'add': {
      add(location, copyJson(operation['value']));
      return;
    }
    case 'remove':
      remove(location);
      return;
    case 'replace':
      read(location);
      {
        write(location, copyJson(operation['value']));
        return;
      }
    case 'test':
      if (!jsonEqual(read(location), operation['value'] ?? null)) throw failed();
      return;
    case 'copy': {
      add(location, copyJson(read(locate(document, from(operation)))));
      return;
    }
    case 'move': {
      const moved = remove(locate(document, from(operation)));
      add(locate(document, String(operation['path'])), moved);
      return;
    }
    default:
      throw failed();
  }
}

function from(operation: JsonObject): string {
  if (typeof operation['from'] === 'string') return operation['from'];
  throw new StatusError('BadRequest', 'an operation of this kind needs from');
}

function locate(document: JsonObject, pointer: string): Location {
  if (pointer !== '' && !pointer.startsWith('/')) throw failed();
  const fields = pointer.split('/').map((field) => field.replaceAll('~1', '/').replaceAll('~0', '~'));
  let parent: unknown = document;
  let field = 'root';
  for (const next of fields.slice(1)) {
    parent = read({ parent, field });
    field = next;
  }
  return { parent, field };
}

function read({ parent, field }: Location): unknown {
  if (Array.isArray(parent)) {
    const index = arrayIndex(field);
    if (index < parent.length) return parent[index];
  } else if (isObject(parent) && Object.hasOwn(parent, field)) return parent[field];
  throw failed();
}

function write({ parent, field }: Location, value: unknown): void {
  if (Array.isArray(parent)) parent[arrayIndex(field)] = value;
  else if (isObject(parent)) setField(parent, field, value);
}

function add(location: Location, value: unknown): void {
  const { parent, field } = location;
  if (Array.isArray(parent)) {
    const index = field === '-' ? parent.length : arrayIndex(field);
    if (index > parent.length) throw failed();
    parent.splice(index, 0, value);
  } else if (isObject(parent)) write(location, value);
  else throw failed();
}

function remove(location: Location): unknown {
  const { parent, field } = location;
  const value = read(location);
  if (Array.isArray(parent)) parent.splice(arrayIndex(field), 1);
  else if (isObject(parent)) Reflect.deleteProperty(parent, field);
  return value;
}

function arrayIndex(field: string): number {
  if (!/^(0|[1-9]\d*)$/.test(field)) throw failed();
  return Number(field);
}

function failed(): StatusError {
  return new StatusError('Invalid', 'the server rejected our request due to an error in our request');
}

/** Applies an RFC 7386 merge patch; neither argument is changed, parts of both may be shared with the result. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, field);
    else setField(result, field, mergePatch(Object.hasOwn(result, field) ? result[field] : undefined, value));
  }
  return result;
}
