import type { SandboxObject } from './client.ts';
import { at, isObject, objectAt, stringAt } from './json.ts';
import { quantityNanos } from './quantity.ts';
import { qualifiedResource } from './resource-type.ts';
import type { ResourceType } from './resource-type.ts';
import { StatusError } from './status-error.ts';
import type { Store } from './store.ts';

/** Finalizers the server puts on every new claim and volume. */
const protectionFinalizers: Readonly<Record<string, string>> = {
  persistentvolumeclaims: 'kubernetes.io/pvc-protection',
  persistentvolumes: 'kubernetes.io/pv-protection',
};
const defaultClassAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];
const betaClassAnnotation = 'volume.beta.kubernetes.io/storage-class';

/**
 * What a new object must meet besides its own rules: an existing, living namespace. @throws {StatusError} `NotFound`,
 * or `Forbidden` with cause `NamespaceTerminating`.
 */
export function requireNamespace(store: Store, type: ResourceType, namespace: string, name: string): void {
  const found = store.get('namespaces', '', namespace);
  if (found === undefined) {
    throw new StatusError('NotFound', `namespaces ${JSON.stringify(namespace)} not found`, {
      details: { name: namespace, kind: 'namespaces' },
    });
  }
  if (found.object.metadata.deletionTimestamp === undefined) return;
  const because = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw new StatusError('Forbidden', `${qualifiedResource(type)} ${JSON.stringify(name)} is forbidden: ${because}`, {
    details: {
      name,
      ...(type.group === '' ? {} : { group: type.group }),
      kind: type.plural,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  });
}

/** Changes a new object as the admission plug-ins of a real server do: protection finalizers, default class. */
export function admitCreate(store: Store, type: ResourceType, object: SandboxObject): void {
  const finalizer = protectionFinalizers[type.storage];
  const { metadata } = object;
  if (finalizer !== undefined && !(metadata.finalizers ?? []).includes(finalizer)) {
    metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
  }
  if (type.storage === 'persistentvolumeclaims') setDefaultClass(store, object);
}

function setDefaultClass(store: Store, claim: SandboxObject): void {
  const { spec } = claim;
  if (!isObject(spec) || spec['storageClassName'] !== undefined) return;
  if (claim.metadata.annotations?.[betaClassAnnotation] !== undefined) return;
  const name = defaultClassName(store);
  if (name !== undefined) spec['storageClassName'] = name;
}

/** The default class: of several the newest, then the one first by name. */
function defaultClassName(store: Store): string | undefined {
  const marked = store
    .list('storageclasses.storage.k8s.io')
    .map(({ object }) => object.metadata)
    .filter(({ annotations }) => defaultClassAnnotations.some((key) => annotations?.[key] === 'true'))
    .sort((a, b) => {
      const [older, newer] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
      if (older !== newer) return older < newer ? 1 : -1;
      return a.name < b.name ? -1 : 1;
    });
  return marked[0]?.name;
}

/** @throws {StatusError} `Forbidden` for a bound claim that asks for more than its class lets it grow. */
export function admitUpdate(store: Store, type: ResourceType, object: SandboxObject, old: SandboxObject): void {
  if (type.storage !== 'persistentvolumeclaims' || stringAt(old, 'status', 'phase') !== 'Bound') return;
  const [size, oldSize] = [object, old].map((claim) =>
    quantityNanos(at(claim, 'spec', 'resources', 'requests', 'storage')),
  );
  if (size === undefined || oldSize === undefined || size <= oldSize) return;
  const className = claimClass(old);
  const storageClass = store.get('storageclasses.storage.k8s.io', '', className)?.object;
  if (className !== '' && className === claimClass(object) && objectAt(storageClass)['allowVolumeExpansion'] === true)
    return;
  const { name } = object.metadata;
  throw new StatusError(
    'Forbidden',
    `persistentvolumeclaims ${JSON.stringify(name)} is forbidden: only dynamically provisioned pvc can be resized ` +
      'and the storageclass that provisions the pvc must support resize',
    { details: { name, kind: 'persistentvolumeclaims' } },
  );
}

function claimClass(claim: SandboxObject): string {
  return claim.metadata.annotations?.[betaClassAnnotation] ?? stringAt(claim, 'spec', 'storageClassName');
}
