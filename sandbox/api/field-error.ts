import { isObject } from './json.ts';
import type { ResourceType } from './resource-type.ts';
import { type StatusCause, StatusError } from './status-error.ts';

/** One complaint about one field of an object. */
export interface FieldError {
  readonly field: string;
  readonly reason:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueForbidden'
    | 'FieldValueNotSupported'
    | 'FieldValueDuplicate'
    | 'FieldValueTooLong';
  /** The text after the field's name. */
  readonly message: string;
}

/** A field that must be there and is not. */
export function required(field: string, detail = ''): FieldError {
  return { field, reason: 'FieldValueRequired', message: joinDetail('Required value', detail) };
}

/** A field whose value is malformed. */
export function invalid(field: string, value: unknown, detail: string): FieldError {
  return { field, reason: 'FieldValueInvalid', message: joinDetail(`Invalid value: ${shown(value)}`, detail) };
}

/** A field that must not be there, or must not change. */
export function forbidden(field: string, detail: string): FieldError {
  return { field, reason: 'FieldValueForbidden', message: joinDetail('Forbidden', detail) };
}

/** A value outside a closed list. */
export function notSupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const list = supported.map((item) => JSON.stringify(item)).join(', ');
  return {
    field,
    reason: 'FieldValueNotSupported',
    message: joinDetail(`Unsupported value: ${shown(value)}`, `supported values: ${list}`),
  };
}

/** A value that may stand only once. */
export function duplicate(field: string, value: unknown): FieldError {
  return { field, reason: 'FieldValueDuplicate', message: `Duplicate value: ${shown(value)}` };
}

/** A value longer than allowed. */
export function tooLong(field: string, limit: number): FieldError {
  return { field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${limit} bytes` };
}

/** The 422 response for an object with these complaints. */
export function invalidObject(kind: string, group: string, name: string, errors: readonly FieldError[]): StatusError {
  const texts = errors.map(({ field, message }) => `${field}: ${message}`);
  const text = texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
  const qualified = group === '' ? kind : `${kind}.${group}`;
  const causes: StatusCause[] = errors.map(({ reason, message, field }) => ({ reason, message, field }));
  return new StatusError('Invalid', `${qualified} ${JSON.stringify(name)} is invalid: ${text}`, {
    details: { ...(name === '' ? {} : { name }), ...(group === '' ? {} : { group }), kind, causes },
  });
}

function joinDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`;
}

function shown(value: unknown): string {
  return value === undefined ? 'null' : JSON.stringify(value);
}

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

/** @throws {StatusError} `Invalid` with these complaints, if there are any. */
export function throwErrors(type: ResourceType, name: string, errors: FieldError[]): void {
  if (errors.length > 0) throw invalidObject(type.kind, type.group, name, errors);
}
