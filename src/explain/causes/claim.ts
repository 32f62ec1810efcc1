/** The claim and its volume: whether both exist, and whether they belong together. */
import { shellCommand } from '../../base/shell-word.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import { namesVolume } from '../../provision/claim-fields.ts';
import type { PersistentVolume } from '../../provision/objects.ts';
import { attempts } from '../attempts.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { found, type Reading } from '../cluster-reader.ts';
import type { Finding, Holding } from '../explanation.ts';
import { controllerLateMs, controllerManagerCure } from '../known-finalizers.ts';
import { binderWords } from '../provisioning-events.ts';
import { differences, volumePatch } from '../static-volumes.ts';
import { durationText, lastChangeMs } from '../texts.ts';
import { defineCause } from './cause.ts';

/** Of a volume that was not found, or could not be read. */
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

/** What kube-controller-manager writes when it binds: a copy that has it counts as bound. */
const withoutBinding =
  'without spec.volumeName and the annotations pv.kubernetes.io/bind-completed and pv.kubernetes.io/bound-by-controller';

/** The claim was bound to a volume that is gone, or that names another claim, or another UID (`syncBoundClaim` of kube-controller-manager). */
export function checkLost(facts: ClaimFacts): Finding | undefined {
  const { claim, volume, events, nowMs } = facts;
  if (claim.status?.phase !== 'Lost') return undefined;
  const held = { state: 'stuck', cause: 'lost' } as const;
  const { volumeName = '' } = claim.spec;
  const { namespace = '', name, uid = '' } = claim.metadata;
  if (volumeName === '') return { ...held, ...exported(claim.metadata) };
  const existing = found(volume);
  const claimRef = existing?.spec.claimRef;
  if (existing === undefined) {
    const other = volume?.kind === 'missing' ? '' : ', or belongs to another claim';
    const words = binderWords(events, ['ClaimLost', 'ClaimMisbound'], nowMs, Infinity);
    return {
      ...held,
      message: `The PersistentVolume ${volumeName} to which the claim was bound is gone${other}.${words === undefined ? '' : ` ${words}`}`,
      cure: `The data may still be in the storage: create a PersistentVolume of this name for it, and the claim is bound again. Its spec.claimRef must name the claim (namespace ${namespace}, name ${name}, uid ${uid}), or another claim may get it. Otherwise recreate the claim ${withoutBinding}`,
    };
  }
  if (claimRef !== undefined && (claimRef.namespace !== namespace || claimRef.name !== name)) {
    return {
      ...held,
      message: `The claim names PersistentVolume ${volumeName}, which is bound to claim ${claimRef.namespace ?? ''}/${claimRef.name ?? ''}: it may be a copy of that claim.`,
      cure: `Delete this claim, and create it again ${withoutBinding}. The volume and the other claim stay as they are`,
    };
  }
  if (claimRef !== undefined && claimRef.uid !== uid) {
    return {
      ...held,
      message: `PersistentVolume ${volumeName} is bound to an earlier claim of the same name, as its UID (spec.claimRef.uid) says: the claim was restored, or recreated with the annotations of the earlier one.`,
      cure: `If the data of the volume is for this claim: ${volumePatch(volumeName, { spec: { claimRef: { uid } } })}`,
    };
  }
  return { ...held, ...boundAgain(facts, existing) };
}

/** kube-controller-manager takes it for one that was bound already. */
function exported({ namespace = '', name }: KubeObject['metadata']): Pick<Holding, 'message' | 'cure'> {
  const key = 'pv.kubernetes.io/bind-completed';
  const words = ['kubectl', 'annotate', 'pvc', name, '--namespace', namespace, `${key}-`];
  return {
    message: `The claim has the annotation ${key} and names no volume, as if it had been bound before: it was created from the export of another one.`,
    cure: `Remove the annotation: ${shellCommand(words) ?? ''}`,
  };
}

/** kube-controller-manager looks at the claim again every few seconds. */
function boundAgain({ nowMs }: ClaimFacts, volume: PersistentVolume): Pick<Holding, 'state' | 'message' | 'cure'> {
  const isLate = nowMs - lastChangeMs(volume) > controllerLateMs;
  const message = `PersistentVolume ${volume.metadata.name} exists, and kube-controller-manager has not bound the claim to it again yet.`;
  if (!isLate) return { state: 'waiting', message, cure: 'Nothing: it takes a moment' };
  return { state: 'stuck', message, cure: controllerManagerCure };
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
const bindingCure = 'Usually nothing: it takes a moment';

/** To be called once the volume of the claim is known to be the right one. */
export function checkBinding({ claim, volume, nowMs }: ClaimFacts): Finding | undefined {
  const existing = found(volume);
  if (existing === undefined) return undefined;
  const { name, deletionTimestamp, creationTimestamp } = existing.metadata;
  if (deletionTimestamp !== undefined) {
    return {
      state: 'waiting',
      cause: 'volume-made',
      message: `PersistentVolume ${name} exists for the claim and is being deleted, so they are not bound.`,
      cure: `Usually nothing: another one is provisioned once it is gone. See why it stays: csi-provisioner why pv/${name}`,
    };
  }
  const base = `PersistentVolume ${name} exists for the claim, and kube-controller-manager has not bound them yet.`;
  // of a volume that the claim names the binder compares nothing; a cached one is not whole
  const isCompared = !namesVolume(claim) && existing.spec.capacity !== undefined;
  const lacks = isCompared ? differences(claim, existing) : [];
  if (lacks.length > 0) {
    return {
      state: 'stuck',
      cause: 'volume-made',
      message: `${base} They will not be bound: ${lacks.map(({ text }) => text).join('; ')}.`,
      cure: `Its provisioner has created what the claim does not ask for: report that to its maintainers. If nothing is stored on it yet, another one is provisioned after: kubectl delete pv ${name}`,
    };
  }
  const isLate = nowMs - Date.parse(creationTimestamp ?? '') > controllerLateMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'volume-made',
    message: base,
    cure: isLate ? controllerManagerCure : bindingCure,
  };
}

/** According to the events: a volume that was deleted before it was bound is followed by another attempt. */
export function checkSucceeded(facts: ClaimFacts): Finding | undefined {
  const { succeeded, failed, started } = attempts(facts);
  if (succeeded === undefined || succeeded.atMs < Math.max(failed?.atMs ?? 0, started?.atMs ?? 0)) return undefined;
  const isLate = facts.nowMs - succeeded.atMs > controllerLateMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'volume-made',
    message: `The provisioner created the volume ${durationText(facts.nowMs - succeeded.atMs)} ago, and kube-controller-manager has not bound it yet. (${succeeded.text})`,
    cure: isLate ? controllerManagerCure : bindingCure,
  };
}
