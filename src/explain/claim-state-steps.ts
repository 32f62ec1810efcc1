/** The first steps of a claim: what it says itself, and the volume that it names. */
import { quantityBytes } from '../base/quantity.ts';
import { className } from '../provision/claim/claim-facts.ts';
import { betaStorageClassKey } from '../provision/keys.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../provision/objects.ts';
import type { ClaimFacts } from './claim-facts-reader.ts';
import { found } from './cluster-reader.ts';
import type { Finding } from './explanation.ts';

const protection = 'kubernetes.io/pvc-protection';
const cloningProtection = 'provisioner.storage.kubernetes.io/cloning-protection';

/** The claim's own phase, and whether it is being deleted. */
export function lookAtClaim(facts: ClaimFacts): Finding {
  const { claim } = facts;
  const { volumeName = '' } = claim.spec;
  if (claim.metadata.deletionTimestamp !== undefined) return deletion(facts);
  if (claim.status?.phase === 'Bound') {
    return { state: 'ok', cause: 'bound', message: `The claim is bound to PersistentVolume ${volumeName}.` };
  }
  if (claim.status?.phase === 'Lost') {
    return {
      state: 'stuck',
      cause: 'lost',
      message: `The PersistentVolume ${volumeName} to which the claim was bound is gone, or belongs to another claim.`,
      cure: 'The data may still be in the storage: create a PersistentVolume of this name for it. Otherwise recreate the claim',
    };
  }
  return { state: 'ok', detail: `it exists and is ${claim.status?.phase ?? 'new'}` };
}

/** A claim that is being deleted stays until its finalizers are gone. */
function deletion({ claim, pods }: ClaimFacts): Finding {
  const { finalizers = [] } = claim.metadata;
  const base = `The claim is being deleted and is held by ${finalizers.join(', ') || 'no finalizer'}`;
  // kube-controller-manager does not wait for Pods without a node: none is given to them while the claim is being deleted
  const using = (found(pods) ?? [])
    .filter(({ spec }) => (spec?.nodeName ?? '') !== '')
    .map(({ metadata }) => metadata.name);
  if (finalizers.includes(protection)) {
    if (using.length > 0) {
      const named =
        using.length > 5 ? `${using.slice(0, 5).join(', ')} and ${using.length - 5} more` : using.join(', ');
      return {
        state: 'waiting',
        cause: 'deleting',
        message: `${base}, because it is used by Pod ${named}.`,
        cure: 'Delete the Pods that use it',
      };
    }
    if (pods?.kind === 'unreadable') {
      return {
        state: 'waiting',
        cause: 'deleting',
        message: `${base}, usually because a Pod uses it; which one cannot be seen: ${pods.why}.`,
        cure: 'Delete the Pods that use it',
      };
    }
  }
  if (finalizers.includes(cloningProtection)) {
    return {
      state: 'waiting',
      cause: 'deleting',
      message: `${base}, because another claim is being cloned from it.`,
      cure: 'Wait until the clone is complete, or delete the claim that is being cloned from it',
    };
  }
  const foreign = finalizers.filter((finalizer) => finalizer !== protection);
  return {
    state: foreign.length > 0 ? 'stuck' : 'waiting',
    cause: 'deleting',
    message: `${base}. No Pod uses it.`,
    cure:
      foreign.length > 0
        ? 'The controllers that set these finalizers remove them: check that they run'
        : 'Nothing: kube-controller-manager will remove the finalizer in a moment',
  };
}

/** The volume that the claim names, or that was made for it. */
export function lookAtVolume({ claim, volume }: ClaimFacts): Finding | undefined {
  const named = (claim.spec.volumeName ?? '') !== '';
  const existing = found(volume);
  if (!named && volume?.kind === 'unreadable') return { state: 'unknown', detail: volume.why };
  if (!named) return existing && madeVolume(claim, existing);
  const name = claim.spec.volumeName ?? '';
  const held = { state: 'stuck', cause: 'waits-for-volume' } as const;
  if (volume?.kind === 'unreadable') {
    return { state: 'unknown', detail: `the claim names PersistentVolume ${name}: ${volume.why}`, ends: true };
  }
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
  return binding(existing, claim);
}

function refersTo(ref: { namespace?: string; name?: string; uid?: string }, claim: PersistentVolumeClaim): boolean {
  const { namespace, name, uid } = claim.metadata;
  return ref.namespace === namespace && ref.name === name && (ref.uid === undefined || ref.uid === uid);
}

function madeVolume(claim: PersistentVolumeClaim, volume: PersistentVolume): Finding {
  const { name } = volume.metadata;
  if (volume.spec.claimRef?.uid === claim.metadata.uid) return binding(volume, claim);
  return {
    state: 'stuck',
    cause: 'name-taken',
    message: `PersistentVolume ${name} exists and is not for this claim, whose volume would get this name.`,
    cure: 'Delete that PersistentVolume if nobody uses it, or recreate the claim',
  };
}

function binding(volume: PersistentVolume, claim: PersistentVolumeClaim): Finding {
  if (volume.metadata.deletionTimestamp !== undefined) {
    return {
      state: 'waiting',
      cause: 'volume-made',
      message: `PersistentVolume ${volume.metadata.name} exists for the claim and is being deleted, so they are not bound.`,
      cure: `Usually nothing: another one is provisioned once it is gone. See why it stays with: why pv/${volume.metadata.name}`,
    };
  }
  const unapplied =
    (claim.spec.volumeAttributesClassName ?? '') !== (volume.spec.volumeAttributesClassName ?? '')
      ? ' Their volumeAttributesClassName differs, so they will not be bound.'
      : '';
  return {
    state: unapplied === '' ? 'waiting' : 'stuck',
    cause: unapplied === '' ? 'volume-made' : 'attributes-class',
    message: `PersistentVolume ${volume.metadata.name} exists for the claim, and kube-controller-manager has not bound them yet.${unapplied}`,
    cure:
      unapplied === ''
        ? 'Usually nothing: it takes a moment. If it stays like this, check that kube-controller-manager runs'
        : 'Recreate the claim without spec.volumeAttributesClassName, or enable the VolumeAttributesClass API',
  };
}

/** As the binder compares them (Kubernetes page "Persistent Volumes", "Binding"). */
function whyUnfit(claim: PersistentVolumeClaim, { metadata, spec }: PersistentVolume): string | undefined {
  if (metadata.deletionTimestamp !== undefined) return 'it is being deleted';
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  const offered = spec.capacity?.['storage'] ?? 0;
  if (quantityBytes(offered) < quantityBytes(requested))
    return `it has ${offered}, and the claim asks for ${requested}`;
  const missing = (claim.spec.accessModes ?? []).filter((mode) => spec.accessModes?.includes(mode) !== true);
  if (missing.length > 0) return `it does not offer ${missing.join(', ')}`;
  const modes = [claim.spec.volumeMode ?? 'Filesystem', spec.volumeMode ?? 'Filesystem'];
  if (modes[0] !== modes[1]) return `its volumeMode is ${modes[1] ?? ''}, and the claim asks for ${modes[0] ?? ''}`;
  const ofVolume = metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName ?? '';
  const ofClaim = className(claim);
  return ofVolume === ofClaim ? undefined : `its class is "${ofVolume}", and the claim's is "${ofClaim}"`;
}
