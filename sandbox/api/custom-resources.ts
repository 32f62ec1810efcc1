import type { Clock } from '../../src/base/clock.ts';
import type { SandboxObject, Subscription } from './client.ts';
import { arrayAt, at, copyJson, objectAt, stringAt, stringsAt } from './json.ts';
import type { ObjectRegistry } from './object-registry.ts';
import { defineResource } from './resource-type.ts';
import type { ResourceType, ResourceTypes } from './resource-type.ts';
import type { Store } from './store.ts';
import { timestamp } from './timestamps.ts';

const storage = 'customresourcedefinitions.apiextensions.k8s.io';

/**
 * Serves what CustomResourceDefinitions define, from the commit of the definition on. Schemas of definitions
 * are not checked: objects are kept as they come. Kinds that are built in stay as they are.
 */
export function serveCustomResources(options: {
  store: Store;
  types: ResourceTypes;
  registry: ObjectRegistry;
  clock: Clock;
  /** Whether the server has this kind of its own, served or disabled. */
  isBuiltIn: (type: ResourceType) => boolean;
}): Subscription {
  const { store, types, registry, clock, isBuiltIn } = options;
  for (const { object } of store.list(storage)) {
    const resource = resourceOf(object);
    if (resource !== undefined && !isBuiltIn(resource)) types.add(resource);
  }
  return store.onCommit(storage, ({ type, revision }) => {
    const definition = revision.object;
    const resource = resourceOf(definition);
    if (resource === undefined) return;
    if (type === 'DELETED') {
      if (isBuiltIn(resource)) return;
      types.delete(resource.group, resource.plural);
      queueMicrotask(() => {
        for (const { object } of store.list(resource.storage)) store.remove(resource.storage, copyJson(object));
      });
      return;
    }
    if (!isBuiltIn(resource)) types.add(resource);
    // A commit must not commit: the status follows right after it.
    if (!isEstablished(definition)) queueMicrotask(() => establish(store, registry, types, definition, clock));
  });
}

function resourceOf(definition: SandboxObject): ResourceType | undefined {
  const spec = objectAt(definition, 'spec');
  const served = arrayAt(spec, 'versions').filter((version) => at(version, 'served') !== false);
  const versions = served.map((version) => stringAt(version, 'name')).filter((name) => name !== '');
  const [group, plural, kind] = [
    stringAt(spec, 'group'),
    stringAt(spec, 'names', 'plural'),
    stringAt(spec, 'names', 'kind'),
  ];
  if (group === '' || plural === '' || kind === '' || versions.length === 0) return undefined;
  const stored = served.find((version) => at(version, 'storage') === true);
  const hasStatus = served.some((version) => at(version, 'subresources', 'status') !== undefined);
  return defineResource({
    group,
    plural,
    kind,
    versions,
    custom: true,
    namespaced: stringAt(spec, 'scope') === 'Namespaced',
    singular: stringAt(spec, 'names', 'singular') || kind.toLowerCase(),
    listKind: stringAt(spec, 'names', 'listKind') || `${kind}List`,
    shortNames: stringsAt(spec, 'names', 'shortNames'),
    categories: stringsAt(spec, 'names', 'categories'),
    subresources: hasStatus ? ['status'] : [],
    storedApiVersion: `${group}/${stringAt(stored, 'name') || (versions[0] ?? 'v1')}`,
  });
}

function isEstablished(definition: SandboxObject): boolean {
  return arrayAt(definition, 'status', 'conditions').some(
    (condition) => stringAt(condition, 'type') === 'Established' && stringAt(condition, 'status') === 'True',
  );
}

function establish(
  store: Store,
  registry: ObjectRegistry,
  types: ResourceTypes,
  definition: SandboxObject,
  clock: Clock,
): void {
  const { name } = definition.metadata;
  const type = types.ofStorage(storage);
  if (type === undefined || store.get(storage, '', name) === undefined) return;
  const lastTransitionTime = timestamp(clock.wallMs());
  const conditions = [
    { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found', lastTransitionTime },
    {
      type: 'Established',
      status: 'True',
      reason: 'InitialNamesAccepted',
      message: 'it is served',
      lastTransitionTime,
    },
  ];
  registry.patch(
    { type, version: 'v1', namespace: '', name },
    (current) => ({
      ...current,
      status: {
        conditions,
        acceptedNames: objectAt(current, 'spec', 'names'),
        storedVersions: arrayAt(current, 'spec', 'versions')
          .filter((version) => at(version, 'storage') === true)
          .map((version) => stringAt(version, 'name')),
      },
    }),
    'status',
  );
}
