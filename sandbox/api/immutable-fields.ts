import { invalid } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { isObject, jsonEqual } from './json.ts';
import type { JsonObject } from './json.ts';

/** Complaints about those of the fields that are not as they were. An empty list or map is as good as none. */
export function immutableFields(object: JsonObject, old: JsonObject, names: readonly string[]): FieldError[] {
  return names
    .filter((field) => !jsonEqual(withoutEmpty(object[field]), withoutEmpty(old[field])))
    .map((field) => invalid(field, object[field], 'field is immutable'));
}

/** Without lists and maps that are empty. @returns `undefined` for such a one itself. */
export function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(emptyParts);
  if (!isObject(value)) return value;
  const fields = Object.entries(value).map(([field, part]) => [field, withoutEmpty(part)] as const);
  const kept = fields.filter(([, part]) => part !== undefined);
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** An item of a list stays an item, empty or not. */
function emptyParts(item: unknown): unknown {
  return isObject(item) ? (withoutEmpty(item) ?? {}) : item;
}
