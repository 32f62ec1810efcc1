import { isDeepStrictEqual } from 'node:util';
import type { Lister } from '../../kube/cache/lister.ts';
import { isPartialClaim, start } from '../cache/cached-claim.ts';
import { className } from '../claim-fields.ts';
import { decisiveAnnotationKeys, type PersistentVolumeClaim, type StorageClass } from '../objects.ts';
import type { Provisioner } from '../provisioner.ts';

export interface ClaimReaders {
  provisioner: Pick<Provisioner, 'claimAnnotations'>;
  classes: Lister<StorageClass>;
}

/**
 * Whether the next attempt for a claim may differ from the last one because of this change of the claim. Anyone who may
 * write a claim can change its annotations many times a second, which must not cause as many calls to the backend.
 */
export function isDecisiveChange(
  old: PersistentVolumeClaim,
  claim: PersistentVolumeClaim,
  { provisioner, classes }: ClaimReaders,
): boolean {
  const [before, after] = [old.metadata, claim.metadata];
  if (before.deletionTimestamp !== after.deletionTimestamp || old.status?.phase !== claim.status?.phase) return true;
  if (old.spec.volumeName !== claim.spec.volumeName) return true;
  const differs = (key: string): boolean => startOf(before, key) !== startOf(after, key);
  if (decisiveAnnotationKeys.some(differs)) return true;
  // a form that lacks parts differs from a whole one; before the claim is bound nobody can change more of its spec
  if (isPartialClaim(old) || isPartialClaim(claim)) return false;
  if (!isDeepStrictEqual(old.spec, claim.spec)) return true;
  if (provisioner.claimAnnotations === undefined)
    return !isDeepStrictEqual([before.annotations, before.labels], [after.annotations, after.labels]);
  const storageClass = classes.get(className(claim));
  return storageClass !== undefined && provisioner.claimAnnotations(storageClass).some(differs);
}

function startOf({ annotations }: PersistentVolumeClaim['metadata'], key: string): string | undefined {
  const value = annotations?.[key];
  return value === undefined ? undefined : start(value);
}
