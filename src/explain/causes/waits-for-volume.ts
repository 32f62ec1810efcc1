/** The claim names a volume that is missing, that another claim has, or that does not fit. */
import { quantityBytes } from '../../base/quantity.ts';
import { className } from '../../provision/claim/claim-fields.ts';
import { betaStorageClassKey } from '../../provision/keys.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

export const waitsForVolume = defineCause({ name: 'waits-for-volume' });

export function checkNamedVolume({ claim, volume }: ClaimFacts): Finding | undefined {
  const { volumeName: name = '' } = claim.spec;
  if (name === '') return undefined;
  const held = { state: 'stuck', cause: 'waits-for-volume' } as const;
  if (volume?.kind === 'unreadable') {
    return { state: 'unknown', detail: `the claim names PersistentVolume ${name}: ${volume.why}`, ends: true };
  }
  const existing = found(volume);
  if (existing === undefined) {
    return {
      ...held,
      message: `The claim names PersistentVolume ${name}, which does not exist.`,
      cure: 'Create that volume, or recreate the claim without spec.volumeName',
    };
  }
  const { claimRef } = existing.spec;
  const isForClaim = claimRef === undefined || refersTo(claimRef, claim);
  if (!isForClaim) {
    const stale = claimRef.namespace === claim.metadata.namespace && claimRef.name === claim.metadata.name;
    return {
      ...held,
      message: `The claim names PersistentVolume ${name}, which is ${existing.status?.phase ?? 'taken'} for ${stale ? 'an earlier claim of the same name' : `claim ${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`}.`,
      cure: stale
        ? `If its data is to be used again: kubectl patch pv ${name} --type=json -p '[{"op":"remove","path":"/spec/claimRef/uid"}]'`
        : 'Recreate the claim for another volume',
    };
  }
  // the binder does not compare a volume that names the claim
  const misfit = claimRef === undefined ? whyUnfit(claim, existing) : undefined;
  if (misfit !== undefined) {
    return {
      ...held,
      message: `The claim names PersistentVolume ${name}, which does not fit: ${misfit}.`,
      cure: 'Recreate the claim so that it fits, or name another volume',
    };
  }
  return undefined;
}

function refersTo(ref: { namespace?: string; name?: string; uid?: string }, claim: PersistentVolumeClaim): boolean {
  const { namespace, name, uid } = claim.metadata;
  return ref.namespace === namespace && ref.name === name && (ref.uid === undefined || ref.uid === uid);
}

/** As the binder compares them (Kubernetes page "Persistent Volumes", "Binding"). */
function whyUnfit(claim: PersistentVolumeClaim, { metadata, spec }: PersistentVolume): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return 'it is being deleted';
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  const offered = spec.capacity?.['storage'] ?? 0;
  if (quantityBytes(offered) < quantityBytes(requested))
    return `it has ${offered}, and the claim requests ${requested}`;
  const missing = (claim.spec.accessModes ?? []).filter((mode) => spec.accessModes?.includes(mode) !== true);
  if (missing.length > 0) return `it does not offer ${missing.join(', ')}`;
  const modes = [claim.spec.volumeMode ?? 'Filesystem', spec.volumeMode ?? 'Filesystem'];
  if (modes[0] !== modes[1]) return `its volumeMode is ${modes[1] ?? ''}, and the claim requests ${modes[0] ?? ''}`;
  const ofVolume = metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName ?? '';
  const ofClaim = className(claim);
  return ofVolume === ofClaim ? undefined : `its class is "${ofVolume}", and the claim's is "${ofClaim}"`;
}
