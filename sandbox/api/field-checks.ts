import { forbidden, invalid, notSupported, required } from './field-error.ts';
import type { FieldError } from './field-error.ts';
import { isObject } from './json.ts';

/** Complaints about the value of the field at `path`; the value of an absent field is `undefined`. */
export type Check = (value: unknown, path: string) => FieldError[];

/** Checks of the fields of an object, by name. What is no object has no fields. */
export function each(checks: Readonly<Record<string, Check>>): Check {
  return (value, path) =>
    Object.entries(checks).flatMap(([field, check]) =>
      check(isObject(value) ? value[field] : undefined, `${path}.${field}`),
    );
}

/** All of these checks. */
export function all(...checks: Check[]): Check {
  return (value, path) => checks.flatMap((check) => check(value, path));
}

/** The check of a field that may be absent. */
export function ifSet(check: Check): Check {
  return (value, path) => (value === undefined ? [] : check(value, path));
}

/** The check of a field that may be absent or empty. */
export function ifFilled(check: Check): Check {
  return (value, path) => (isEmpty(value) ? [] : check(value, path));
}

/** A text or list that must not be empty. */
export const filled: Check = (value, path) => (isEmpty(value) ? [required(path)] : []);

/** A text that must be there and follow a syntax. @param problem - what is wrong with it; empty if nothing. */
export function named(problem: (text: string) => string): Check {
  return (value, path) => (isEmpty(value) ? [required(path)] : syntax(problem)(value, path));
}

/** A text of a syntax. @param problem - what is wrong with it; empty if nothing. */
export function syntax(problem: (text: string) => string): Check {
  return (value, path) => {
    const text = typeof value === 'string' ? value : '';
    const why = problem(text);
    return why === '' ? [] : [invalid(path, text, why)];
  };
}

/** One of a closed list, if it is there. */
export function oneOf(...supported: string[]): Check {
  return (value, path) =>
    value === undefined || supported.includes(value as string) ? [] : [notSupported(path, value, supported.toSorted())];
}

/** A number in these bounds, if it is there. */
export function between(low: number, high: number): Check {
  return (value, path) =>
    typeof value === 'number' && (value < low || value > high)
      ? [invalid(path, value, `must be between ${low} and ${high}, inclusive`)]
      : [];
}

/** A field that must not be there. */
export function absent(why: string): Check {
  return (value, path) => (value === undefined ? [] : [forbidden(path, why)]);
}

/** Whether nothing is there, or an empty text or list. */
export function isEmpty(value: unknown): boolean {
  return value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
}

/** Whether a text has more bytes than that; no text has none. */
export function isLongerThan(value: unknown, bytes: number): boolean {
  return typeof value === 'string' && Buffer.byteLength(value) > bytes;
}
