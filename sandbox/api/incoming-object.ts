import type { SandboxMeta, SandboxObject } from './client.ts';
import { copyJson, isObject, jsonEqual } from './json.ts';
import type { JsonObject } from './json.ts';
import { anyKindSchema, schemaOf } from './kind-schemas.ts';
import { groupVersion } from './resource-type.ts';
import type { VersionedType } from './resource-type.ts';
import { conform } from './schema.ts';
import { StatusError } from './status-error.ts';

/** What happens to fields the kind does not have: drop, drop and warn, or refuse. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/**
 * A private copy of a request's object in the stored form: nulls and unknown fields dropped, quantities canonical.
 *
 * @throws {StatusError} `BadRequest` for another kind or version, a wrong type, or unknown fields when strict.
 */
export function fromRequest(
  to: VersionedType,
  body: JsonObject,
  options: { readonly fieldValidation?: FieldValidation; readonly warn?: (text: string) => void },
): SandboxObject {
  const { type, version } = to;
  requireKind(to, body);
  const storedGroup = type.storedApiVersion.includes('/') ? type.group : '';
  const schema = schemaOf(type.kind, storedGroup);
  const copy = copyJson(body, { dropNulls: schema === undefined });
  copy['metadata'] ??= {};
  if (!isObject(copy['metadata'])) {
    throw new StatusError('BadRequest', 'json: cannot unmarshal metadata: it must be an object');
  }
  copy['metadata']['name'] ??= '';
  copy['kind'] = type.kind;
  copy['apiVersion'] = type.storedApiVersion;
  const object = type.toStored === undefined ? (copy as SandboxObject) : type.toStored(copy as SandboxObject);
  const unknown = cannotBeHandled(to, () =>
    schema === undefined ? conform({ metadata: object.metadata }, anyKindSchema) : conform(object, schema),
  );
  dropEmpty(object.metadata);
  dropRepeatedOwners(object.metadata);
  if (unknown.length > 0) {
    const texts = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
    if (options.fieldValidation === 'Strict') {
      throw new StatusError(
        'BadRequest',
        `${type.kind} in version ${JSON.stringify(version)} cannot be handled as a ${type.kind}: ` +
          `strict decoding error: ${texts.join(', ')}`,
      );
    }
    if (options.fieldValidation !== 'Ignore') for (const text of texts) options.warn?.(text);
  }
  return object;
}

/** An empty list or map in metadata is as good as none, and is stored as none. */
function dropEmpty(metadata: SandboxMeta): void {
  for (const field of ['labels', 'annotations', 'finalizers', 'ownerReferences'] as const) {
    const value = metadata[field];
    if (value !== undefined && Object.keys(value).length === 0) Reflect.deleteProperty(metadata, field);
  }
}

function dropRepeatedOwners(metadata: SandboxMeta): void {
  const { ownerReferences: owners } = metadata;
  if (owners === undefined) return;
  metadata.ownerReferences = owners.filter(
    (owner, index) => owners.findIndex((other) => jsonEqual(other, owner)) === index,
  );
}

function requireKind({ type, version }: VersionedType, { kind, apiVersion }: JsonObject): void {
  const expected = groupVersion(type.group, version);
  if (apiVersion !== undefined && apiVersion !== '' && apiVersion !== expected) {
    throw new StatusError(
      'BadRequest',
      `the API version in the data (${shown(apiVersion)}) does not match the expected API version (${expected})`,
    );
  }
  if (kind !== undefined && kind !== '' && kind !== type.kind) {
    throw new StatusError(
      'BadRequest',
      `${shown(kind)} in version ${JSON.stringify(version)} cannot be handled as a ${type.kind}`,
    );
  }
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function cannotBeHandled<T>({ type, version }: VersionedType, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const prefix = `${type.kind} in version ${JSON.stringify(version)} cannot be handled as a ${type.kind}`;
    throw new StatusError('BadRequest', `${prefix}: ${error.message}`, { cause: error });
  }
}

/**
 * @param name - the name in the path, or `undefined` on create.
 * @throws {StatusError} `BadRequest` if the object's name or namespace is not that of the path.
 */
export function requireSameObject(metadata: SandboxMeta, namespace: string, name: string | undefined): void {
  const given = metadata.namespace ?? '';
  if (namespace !== '' && given !== '' && given !== namespace) {
    throw new StatusError(
      'BadRequest',
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
  if (namespace !== '') metadata.namespace = namespace;
  else delete metadata.namespace;
  if (name === undefined) return;
  if (metadata.name === '') throw new StatusError('BadRequest', 'name must be provided');
  if (metadata.name !== name) {
    throw new StatusError(
      'BadRequest',
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
}
