import { canonicalQuantity } from './quantity.ts';
import { copyJson, isObject, jsonEqual, setField } from './json.ts';
import type { JsonObject } from './json.ts';
import { StatusError } from './status-error.ts';

/** The shape of a value, as far as the server checks it: enough to find misspelt fields and to describe kinds. */
export type Schema = Scalar | OptionalSchema | ObjectSchema | ListSchema | MapSchema;

/** `any` is left alone, `quantity` is brought into its canonical form. */
export type Scalar =
  'string' | 'integer' | 'int32' | 'number' | 'boolean' | 'time' | 'quantity' | 'intOrString' | 'any';

/** A scalar whose empty value is not the same as none. */
export interface OptionalSchema {
  readonly optional: Scalar;
}

export interface ObjectSchema {
  readonly fields: Readonly<Record<string, Schema>>;
}

export interface ListSchema {
  readonly list: Schema;
}

export interface MapSchema {
  readonly map: Schema;
}

/** An object with these fields and no others. */
export function fields(members: Record<string, Schema>): ObjectSchema {
  return { fields: members };
}

/** A scalar whose empty value (`''`, 0, false) is not the same as none. */
export function optional(scalar: Scalar): OptionalSchema {
  return { optional: scalar };
}

/** An array. */
export function list(item: Schema): ListSchema {
  return { list: item };
}

/** An object with free field names. */
export function map(value: Schema): MapSchema {
  return { map: value };
}

/** Whether two objects of a schema mean the same: a field with an empty value is as good as none, unless optional. */
export function sameFields(a: unknown, b: unknown, schema: Schema): boolean {
  return jsonEqual(withoutEmpty(a, schema), withoutEmpty(b, schema));
}

function withoutEmpty(value: unknown, schema: Schema): unknown {
  if (typeof schema === 'string') return value === '' || value === 0 || value === false ? undefined : value;
  if ('list' in schema && Array.isArray(value)) {
    return value.length === 0 ? undefined : value.map((item) => withoutEmpty(item, schema.list) ?? null);
  }
  if (!isObject(value) || 'list' in schema || 'optional' in schema) return value;
  if ('map' in schema) return Object.keys(value).length === 0 ? undefined : value;
  return Object.fromEntries(
    Object.entries(value).map(([field, part]) => [field, withoutEmpty(part, schema.fields[field] ?? 'any')]),
  );
}

/**
 * Brings a value that the caller owns into the shape of the schema: fields the schema does not know and null ones are
 * removed, other nulls become the empty value of their type, quantities become canonical.
 *
 * @returns the paths of the removed fields.
 * @throws {StatusError} `BadRequest` for a value of another type than the schema says.
 */
export function conform(value: JsonObject, schema: ObjectSchema): string[] {
  const unknown: string[] = [];
  visit(value, schema, '', unknown);
  return unknown;
}

/** Returns the value to store in place of `value`. */
function visit(value: unknown, schema: Schema, path: string, unknown: string[]): unknown {
  if (value === null) return emptyValue(schema);
  if (typeof schema === 'string') return scalar(value, schema, path);
  if ('optional' in schema) return scalar(value, schema.optional, path);
  if ('list' in schema) {
    if (!Array.isArray(value)) throw wrongType(value, 'array', path);
    const items = value as unknown[];
    for (const [index, item] of items.entries()) items[index] = visit(item, schema.list, `${path}[${index}]`, unknown);
    return items;
  }
  if (!isObject(value)) throw wrongType(value, 'object', path);
  if ('map' in schema) {
    for (const [field, part] of Object.entries(value))
      setField(value, field, visit(part, schema.map, join(path, field), unknown));
    return value;
  }
  for (const [field, part] of Object.entries(value)) {
    const known = Object.hasOwn(schema.fields, field) ? schema.fields[field] : undefined;
    if (known === undefined) unknown.push(join(path, field));
    if (known === undefined || part === null) Reflect.deleteProperty(value, field);
    else value[field] = visit(part, known, join(path, field), unknown);
  }
  return value;
}

/** What a null stands for in a list or map. */
function emptyValue(schema: Schema): unknown {
  if (typeof schema !== 'string')
    return 'list' in schema ? [] : 'optional' in schema ? emptyValue(schema.optional) : {};
  switch (schema) {
    case 'string':
    case 'time':
      return '';
    case 'quantity':
      return '0';
    case 'boolean':
      return false;
    case 'any':
      return undefined;
    default:
      return 0;
  }
}

function scalar(value: unknown, schema: Scalar, path: string): unknown {
  switch (schema) {
    case 'any':
      return copyJson(value, { dropNulls: true });
    case 'quantity': {
      const canonical = canonicalQuantity(value);
      if (canonical !== undefined) return canonical;
      throw new StatusError(
        'BadRequest',
        `${path}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      );
    }
    case 'string':
      if (typeof value === 'string') return value;
      break;
    case 'time':
      if (typeof value === 'string' && isTime(value)) return value;
      break;
    case 'integer':
      if (isWhole(value, 63)) return value;
      break;
    case 'int32':
      if (isWhole(value, 31)) return value;
      break;
    case 'number':
      if (typeof value === 'number') return value;
      break;
    case 'boolean':
      if (typeof value === 'boolean') return value;
      break;
    case 'intOrString':
      if (typeof value === 'string' || Number.isInteger(value)) return value;
      break;
  }
  throw wrongType(value, schema, path);
}

function isTime(text: string): boolean {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)$/;
  return form.test(text) && !Number.isNaN(Date.parse(text.replace(',', '.')));
}

/** A signed number of so many bits besides that of the sign. */
function isWhole(value: unknown, bits: number): boolean {
  return Number.isInteger(value) && (value as number) >= -(2 ** bits) && (value as number) < 2 ** bits;
}

function wrongType(value: unknown, wanted: string, path: string): StatusError {
  const found = Array.isArray(value) ? 'array' : typeof value;
  return new StatusError('BadRequest', `json: cannot unmarshal ${found} into field ${path} of type ${wanted}`);
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}
