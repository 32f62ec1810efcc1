import { canonicalQuantity } from './quantity.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './json.ts';
import { StatusError } from './status-error.ts';

/** The shape of a value, as far as the server checks it: enough to find misspelt fields and to describe kinds. */
export type Schema = Scalar | ObjectSchema | ListSchema | MapSchema;

/** `any` is left alone, `quantity` is brought into its canonical form. */
export type Scalar = 'string' | 'integer' | 'number' | 'boolean' | 'time' | 'quantity' | 'intOrString' | 'any';

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

/** An array. */
export function list(item: Schema): ListSchema {
  return { list: item };
}

/** An object with free field names. */
export function map(value: Schema): MapSchema {
  return { map: value };
}

/**
 * Brings a value that the caller owns into the shape of the schema: fields the schema does not know are removed,
 * quantities become canonical.
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
  if (typeof schema === 'string') return scalar(value, schema, path);
  if ('list' in schema) {
    if (!Array.isArray(value)) throw wrongType(value, 'array', path);
    const items = value as unknown[];
    for (const [index, item] of items.entries()) items[index] = visit(item, schema.list, `${path}[${index}]`, unknown);
    return items;
  }
  if (!isObject(value)) throw wrongType(value, 'object', path);
  if ('map' in schema) {
    for (const [field, part] of Object.entries(value))
      value[field] = visit(part, schema.map, join(path, field), unknown);
    return value;
  }
  for (const [field, part] of Object.entries(value)) {
    const known = Object.hasOwn(schema.fields, field) ? schema.fields[field] : undefined;
    if (known === undefined) {
      unknown.push(join(path, field));
      Reflect.deleteProperty(value, field);
    } else value[field] = visit(part, known, join(path, field), unknown);
  }
  return value;
}

function scalar(value: unknown, schema: Scalar, path: string): unknown {
  switch (schema) {
    case 'any':
      return value;
    case 'quantity': {
      const canonical = canonicalQuantity(value);
      if (canonical !== undefined) return canonical;
      throw new StatusError(
        'BadRequest',
        `${path}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
      );
    }
    case 'string':
    case 'time':
      if (typeof value === 'string') return value;
      break;
    case 'integer':
      if (Number.isInteger(value)) return value;
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

function wrongType(value: unknown, wanted: string, path: string): StatusError {
  const found = Array.isArray(value) ? 'array' : typeof value;
  return new StatusError('BadRequest', `json: cannot unmarshal ${found} into field ${path} of type ${wanted}`);
}

function join(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}
