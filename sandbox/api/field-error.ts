import { StatusError } from './status-error.ts';
import type { StatusCause } from './status-error.ts';

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
