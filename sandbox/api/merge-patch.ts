import { isObject, setField } from './json.ts';
import type { JsonObject } from './json.ts';

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
