import { describeField, describeKind } from './kind-descriptions.ts';
import { anyKindSchema, schemaOf } from './kind-schemas.ts';
import { groupVersion } from './resource-type.ts';
import type { ResourceType, ResourceTypes } from './resource-type.ts';
import type { Schema } from './schema.ts';

/** Response to `/openapi/v3`: every served group version, since kubectl asks no further for one that is missing. */
export function openApiIndex(types: ResourceTypes): object {
  const paths: Record<string, object> = {};
  for (const { group, versions } of types.groups()) {
    for (const version of versions) {
      const path = group === '' ? `api/${version}` : `apis/${group}/${version}`;
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${types.generation}` };
    }
  }
  return { paths };
}

/** The document of one group version, or `undefined` if it is not served. */
export function openApiDocument(types: ResourceTypes, group: string, version: string): object | undefined {
  const served = types.inVersion(group, version);
  if (served.length === 0) return undefined;
  const paths: Record<string, object> = {};
  const schemas: Record<string, object> = {};
  for (const type of served) {
    paths[`${basePath(group, version, type)}/{name}`] = { patch: patchOperation(group, version, type) };
    schemas[schemaName(group, version, type)] = kindSchema(group, version, type);
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes API of the sandbox', version: groupVersion(group, version) },
    paths,
    components: { schemas },
  };
}

function basePath(group: string, version: string, type: ResourceType): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return type.namespaced ? `${root}/namespaces/{namespace}/${type.plural}` : `${root}/${type.plural}`;
}

function schemaName(group: string, version: string, type: ResourceType): string {
  return `${group === '' ? 'core' : group}.${version}.${type.kind}`;
}

/** That `fieldValidation` is offered makes kubectl leave the checking of fields to us. */
function patchOperation(group: string, version: string, type: ResourceType): object {
  const parameter = (name: string, kind: 'string' | 'boolean'): object => ({
    name,
    in: 'query',
    schema: { type: kind, uniqueItems: true },
  });
  return {
    'x-kubernetes-action': 'patch',
    'x-kubernetes-group-version-kind': { group, version, kind: type.kind },
    parameters: [
      parameter('dryRun', 'string'),
      parameter('fieldManager', 'string'),
      parameter('fieldValidation', 'string'),
      parameter('force', 'boolean'),
    ],
    responses: {
      200: {
        description: 'OK',
        content: {
          'application/json': { schema: { $ref: `#/components/schemas/${schemaName(group, version, type)}` } },
        },
      },
    },
  };
}

function kindSchema(group: string, version: string, type: ResourceType): object {
  const storedGroup = type.storedApiVersion.includes('/') ? group : '';
  const known = schemaOf(type.kind, storedGroup) ?? {
    fields: { apiVersion: 'string', kind: 'string', ...anyKindSchema.fields, spec: 'any', status: 'any' } as const,
  };
  return {
    ...describe(known, type.kind, []),
    description: describeKind(type.kind, groupVersion(group, version)),
    'x-kubernetes-group-version-kind': [{ group, version, kind: type.kind }],
  };
}

function describe(schema: Schema, kind: string, path: readonly string[]): object {
  if (typeof schema !== 'string') {
    if ('optional' in schema) return describe(schema.optional, kind, path);
    if ('list' in schema) return { type: 'array', items: describe(schema.list, kind, path) };
    if ('map' in schema) return { type: 'object', additionalProperties: describe(schema.map, kind, path) };
    const properties = Object.entries(schema.fields).map(([field, part]) => {
      const inner = [...path, field];
      return [field, { ...describe(part, kind, inner), description: describeField(kind, inner) }] as const;
    });
    return { type: 'object', properties: Object.fromEntries(properties) };
  }
  switch (schema) {
    case 'integer':
      return { type: 'integer', format: 'int64' };
    case 'int32':
      return { type: 'integer', format: 'int32' };
    case 'number':
      return { type: 'number' };
    case 'boolean':
      return { type: 'boolean' };
    case 'time':
      return { type: 'string', format: 'date-time' };
    case 'intOrString':
      return { 'x-kubernetes-int-or-string': true };
    case 'any':
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
    case 'string':
    case 'quantity':
      return { type: 'string' };
  }
}
