/** A JSON object whose fields nobody has checked yet. */
export type JsonObject = Record<string, unknown>;

/** True for JSON objects: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value at a path of field names, or `undefined` where the path ends early. */
export function at(value: unknown, ...path: string[]): unknown {
  let current = value;
  for (const field of path) {
    if (!isObject(current)) return undefined;
    current = current[field];
  }
  return current;
}

/** The object at a path, or an empty one that is not part of `value`. */
export function objectAt(value: unknown, ...path: string[]): JsonObject {
  const found = at(value, ...path);
  return isObject(found) ? found : {};
}

/** The array at a path, or an empty one that is not part of `value`. */
export function arrayAt(value: unknown, ...path: string[]): unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? (found as unknown[]) : [];
}

/** The string at a path, or the empty string. */
export function stringAt(value: unknown, ...path: string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

/** The string elements of the array at a path. */
export function stringsAt(value: unknown, ...path: string[]): string[] {
  return arrayAt(value, ...path).filter((item) => typeof item === 'string');
}

/** Equality of JSON values; the order of fields does not matter, an `undefined` field counts as absent. */
export function jsonEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => jsonEqual(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  let fields = 0;
  for (const [field, value] of Object.entries(a)) {
    if (value === undefined) continue;
    fields++;
    if (!jsonEqual(value, b[field])) return false;
  }
  return fields === Object.values(b).filter((value) => value !== undefined).length;
}

/** Freezes a value and everything in it; returns it. Parts that are frozen already are taken as deeply frozen. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}

/** A deep copy of a JSON value without its `undefined` fields; with `dropNulls` also without null fields. */
export function copyJson<T>(value: T, options: { dropNulls?: boolean } = {}): T {
  return copy(value, options.dropNulls === true) as T;
}

function copy(value: unknown, dropNulls: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => copy(item, dropNulls));
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [field, part] of Object.entries(value)) {
    if (part === undefined || (part === null && dropNulls)) continue;
    setField(result, field, copy(part, dropNulls));
  }
  return result;
}

/** Sets a field, also one called `__proto__`, which a plain assignment would swallow. */
export function setField(object: JsonObject, field: string, value: unknown): void {
  if (field === '__proto__') {
    Object.defineProperty(object, field, { value, enumerable: true, configurable: true, writable: true });
  } else object[field] = value;
}
