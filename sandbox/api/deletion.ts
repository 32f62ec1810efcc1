import type { SandboxMeta, SandboxObject } from './client.ts';
import { arrayAt, at, stringAt } from './json.ts';
import type { ResourceType } from './resource-type.ts';
import { conflict } from './status-error.ts';

/** `DeleteOptions` as far as the server knows them. */
export interface DeleteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly dryRun?: boolean;
}

/** Finalizers besides those in the metadata: namespaces have their own. */
export function namespaceFinalizers(type: ResourceType, object: SandboxObject): unknown[] {
  return type.storage === 'namespaces' ? arrayAt(object, 'spec', 'finalizers') : [];
}

/** Whether nothing holds an object any more that is marked as deleted. */
export function isReleased(type: ResourceType, object: SandboxObject): boolean {
  const { deletionTimestamp, finalizers = [], deletionGracePeriodSeconds = 0 } = object.metadata;
  if (deletionTimestamp === undefined || finalizers.length > 0 || deletionGracePeriodSeconds > 0) return false;
  return namespaceFinalizers(type, object).length === 0;
}

/** Seconds a pod keeps running after its deletion; other kinds have none. */
export function graceSeconds(type: ResourceType, object: SandboxObject, { gracePeriodSeconds }: DeleteOptions): number {
  if (type.storage !== 'pods') return 0;
  const phase = stringAt(object, 'status', 'phase');
  if (stringAt(object, 'spec', 'nodeName') === '' || phase === 'Succeeded' || phase === 'Failed') return 0;
  const own = at(object, 'spec', 'terminationGracePeriodSeconds');
  return Math.max(0, gracePeriodSeconds ?? (typeof own === 'number' ? own : 30));
}

/** @throws {StatusError} `Conflict` if the deletion was meant for another object or another state. */
export function checkPreconditions(
  type: ResourceType,
  name: string,
  metadata: SandboxMeta,
  options: DeleteOptions,
): void {
  const { uid = '', resourceVersion = '' } = metadata;
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      { ...type, plural: type.kind },
      name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). ` +
        'The object might have been deleted and then recreated',
    );
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== resourceVersion) {
    throw conflict(
      { ...type, plural: type.kind },
      name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match ` +
        `the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    );
  }
}
