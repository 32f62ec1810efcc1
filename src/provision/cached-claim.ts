import type { KubeObject } from '../kube/kube-object.ts';
import { markReduced } from '../kube/reduced-object.ts';
import type { SharedValues } from '../kube/shared-values.ts';
import { type KeptFields, type KeptParts, keptParts } from './kept-fields.ts';
import type { PersistentVolumeClaim } from './objects.ts';
import { sameButVersion } from './same-but-version.ts';

/**
 * Makes the cached form of claims. A claim without a volume is kept whole, since a provisioner may read all of it, and
 * only loses its managed fields, which an update may leave out. A claim with a volume keeps what clones, source
 * protection and deletion read, and `fields`; it must never be sent back.
 */
export function claimTransform(
  shared: SharedValues,
  fields?: KeptFields<PersistentVolumeClaim>,
): (object: KubeObject) => PersistentVolumeClaim {
  return (object) => {
    const claim = object as PersistentVolumeClaim & { metadata: { managedFields?: unknown } };
    if (!isWholeClaim(claim)) return boundClaim(claim, shared, fields && keptParts(claim, fields));
    delete claim.metadata.managedFields;
    if (claim.metadata.namespace !== undefined) claim.metadata.namespace = shared.string(claim.metadata.namespace);
    return claim;
  };
}

/** Whether the cached form of a claim is whole: it has no volume. */
export function isWholeClaim({ spec }: PersistentVolumeClaim): boolean {
  return (spec.volumeName ?? '') === '';
}

function boundClaim(
  { metadata, spec, status }: PersistentVolumeClaim,
  shared: SharedValues,
  kept: KeptParts<PersistentVolumeClaim> | undefined,
): PersistentVolumeClaim {
  const storage = spec.resources?.requests?.['storage'];
  const cached = {
    metadata: {
      name: metadata.name,
      namespace: shared.string(metadata.namespace),
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      deletionTimestamp: metadata.deletionTimestamp,
      finalizers: shared.value(metadata.finalizers),
      ...(kept && { annotations: kept.annotations, labels: kept.labels }),
    },
    spec: {
      volumeName: spec.volumeName,
      storageClassName: shared.string(spec.storageClassName),
      volumeMode: shared.string(spec.volumeMode),
      resources: storage === undefined ? undefined : shared.value({ requests: { storage } }),
      dataSource: spec.dataSource,
      dataSourceRef: spec.dataSourceRef,
      ...kept?.spec,
    },
    status: shared.value(status?.phase === undefined ? undefined : { phase: status.phase }),
  };
  // Absent fields are there as undefined, so that all cached claims have one shape; no reader sees a difference.
  return markReduced(cached) as PersistentVolumeClaim;
}

/** Whether two cached forms differ in nothing that is read: then the change reaches no handler. */
export function sameClaim(old: PersistentVolumeClaim, claim: PersistentVolumeClaim): boolean {
  if (isWholeClaim(old) || isWholeClaim(claim)) return sameButVersion(old, claim);
  return (
    old.metadata.deletionTimestamp === claim.metadata.deletionTimestamp &&
    old.metadata.finalizers === claim.metadata.finalizers && // shared values are equal when they are the same
    old.status === claim.status &&
    old.spec.volumeName === claim.spec.volumeName &&
    old.spec.storageClassName === claim.spec.storageClassName &&
    old.spec.resources === claim.spec.resources
  );
}
