/** The claim and its volume: whether both exist, and whether they belong together. */
import { quantityBytes } from '../../base/quantity.ts';
import { shellWord } from '../../base/shell-word.ts';
import { className } from '../../provision/claim/claim-fields.ts';
import { betaStorageClassKey } from '../../provision/keys.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../provision/objects.ts';
import { attempts } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found, type Reading } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { durationText } from '../time-text.ts';
import { defineCause } from './cause.ts';

/** Of a claim that was not found, or could not be read. */
export function claimNotRead(namespace: string, name: string): (reading: Reading<unknown>) => Finding {
  return (reading) =>
    reading.kind === 'unreadable'
      ? { state: 'unknown', detail: reading.why }
      : {
          state: 'unknown',
          cause: 'not-found',
          message: `There is no claim ${namespace}/${name}.`,
          cure: `List the claims: kubectl get pvc --namespace ${shellWord(namespace) ?? 'NAMESPACE'}`,
        };
}

/** The same of a volume. */
export function volumeNotRead(name: string): (reading: Reading<unknown>) => Finding {
  return (reading) =>
    reading.kind === 'unreadable'
      ? { state: 'unknown', detail: reading.why }
      : {
          state: 'unknown',
          cause: 'not-found',
          message: `There is no PersistentVolume ${name}.`,
          cure: 'List the volumes: kubectl get pv',
        };
}

/** The claim has its volume. */
export function checkBound({ claim, volume, node }: ClaimFacts): Finding | undefined {
  if (claim.status?.phase !== 'Bound') return undefined;
  const { volumeName = '' } = claim.spec;
  const message = `The claim is bound to PersistentVolume ${volumeName}.`;
  const selected = found(node);
  if (selected === undefined || !excludes(found(volume), selected.metadata.labels)) {
    return { state: 'ok', cause: 'bound', message };
  }
  return {
    state: 'ok',
    cause: 'bound',
    message: `${message} The node that was selected for it, ${selected.metadata.name}, is not in the node affinity of the volume: no Pod can use it there.`,
    cure: 'Start the Pod on a node that the volume allows; if the class has allowedTopologies, name all topology keys of the driver in each term, and recreate the claim',
  };
}

/** By conditions as provisioners write them; of a volume in the form of an in-tree plugin the scheduler compares other labels. */
function excludes(volume: PersistentVolume | undefined, labels: Record<string, string> = {}): boolean {
  const terms = volume?.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  if (volume?.spec.csi === undefined || terms.length === 0) return false;
  return terms.every(({ matchExpressions = [] }) =>
    matchExpressions.some(
      ({ key, operator, values = [] }) => operator === 'In' && !values.some((value) => labels[key] === value),
    ),
  );
}

/** The claim was bound to a volume that is gone. */
export function checkLost({ claim }: ClaimFacts): Finding | undefined {
  if (claim.status?.phase !== 'Lost') return undefined;
  return {
    state: 'stuck',
    cause: 'lost',
    message: `The PersistentVolume ${claim.spec.volumeName ?? ''} to which the claim was bound is gone, or belongs to another claim.`,
    cure: 'The data may still be in the storage: create a PersistentVolume of this name for it. Otherwise recreate the claim',
  };
}

/** The claim names a volume that is missing, that another claim has, or that does not fit. */
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

const takenCure = 'Delete that PersistentVolume if nobody uses it, or recreate the claim';

/** Another PersistentVolume has the name that the claim's volume would get. */
export const nameTaken = defineCause({
  name: 'name-taken',
  failures: [
    { pattern: /^PersistentVolume ".*" exists already|PersistentVolume ".*" exists already /, cure: takenCure },
  ],
  waits: [
    {
      pattern: /^Waiting for a deletion: /,
      state: 'waiting',
      cure: 'Wait until that PersistentVolume is deleted; if it stays, find out why it is not deleted',
    },
    {
      pattern: /^Waiting: /,
      state: 'stuck',
      cure: 'Raise --volume-name-uuid-length of the provisioner: names of volumes are too short to be unique',
    },
  ],
});

export function checkNameTaken({ claim, volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if ((claim.spec.volumeName ?? '') !== '' || existing === undefined) return undefined;
  if (existing.spec.claimRef?.uid === claim.metadata.uid) return undefined;
  return {
    state: 'stuck',
    cause: 'name-taken',
    message: `PersistentVolume ${existing.metadata.name} exists and is not for this claim, whose volume would get this name.`,
    cure: takenCure,
  };
}

/** Of a claim with a volume, to which kube-controller-manager has not bound it yet. */
const bindingCure =
  'Usually nothing: it takes a moment. If it stays like this, check that kube-controller-manager runs';

/** To be called once the volume of the claim is known to be the right one. */
export function checkBinding({ volume }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined) return undefined;
  const { name, deletionTimestamp } = existing.metadata;
  if (deletionTimestamp !== undefined) {
    return {
      state: 'waiting',
      cause: 'volume-made',
      message: `PersistentVolume ${name} exists for the claim and is being deleted, so they are not bound.`,
      cure: `Usually nothing: another one is provisioned once it is gone. See why it stays: csi-provisioner why pv/${name}`,
    };
  }
  return {
    state: 'waiting',
    cause: 'volume-made',
    message: `PersistentVolume ${name} exists for the claim, and kube-controller-manager has not bound them yet.`,
    cure: bindingCure,
  };
}

/** According to the events: a volume that was deleted before it was bound is followed by another attempt. */
export function checkSucceeded(facts: ClaimFacts): Finding | undefined {
  const { succeeded, failed, started } = attempts(facts);
  if (succeeded === undefined || succeeded.atMs < Math.max(failed?.atMs ?? 0, started?.atMs ?? 0)) return undefined;
  return {
    state: 'waiting',
    cause: 'volume-made',
    message: `The provisioner created the volume ${durationText(facts.nowMs - succeeded.atMs)} ago, and kube-controller-manager has not bound it yet. (${succeeded.text})`,
    cure: bindingCure,
  };
}
