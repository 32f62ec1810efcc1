/** A claim that only an existing volume can serve: it names one, or nothing is provisioned for it. */
import { nearestName } from '../../base/near-name.ts';
import { className } from '../../provision/claim-fields.ts';
import { type PersistentVolume, type PersistentVolumeClaim, provisionedByKey } from '../../provision/objects.ts';
import { type ClaimFacts, waitsForConsumer } from '../claim-facts-reader.ts';
import type { Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Finding, Holding } from '../explanation.ts';
import { controllerLateMs, controllerManagerCure } from '../known-finalizers.ts';
import { isForNode } from '../node-labels.ts';
import { defaultClass, otherClassCure, recreation } from '../other-classes.ts';
import { binderWords } from '../provisioning-events.ts';
import {
  classOfStatic,
  type Difference,
  differences,
  freeCure,
  hostsOf,
  nearVolume,
  noProvisioner,
  refersTo,
  reuseCure,
} from '../static-volumes.ts';
import { durationText, lastChangeMs, lasting } from '../texts.ts';
import { defineCause } from './cause.ts';

/** What to do about a volume that the claim names and that does not exist. */
function missingVolume(name: string, { claim, staticVolumes }: ClaimFacts): { message: string; cure: string } {
  const message = `The claim names PersistentVolume ${name}, which does not exist.`;
  const volumes = found(staticVolumes?.volumes) ?? [];
  const near = nearestName(
    name,
    volumes.map(({ metadata }) => metadata.name),
  );
  if (near === undefined) return { message, cure: 'Create that volume, or recreate the claim without spec.volumeName' };
  const command = recreation(claim, { spec: { volumeName: near } });
  return {
    message: `${message} The cluster has ${near}: spec.volumeName may be misspelt.`,
    cure: `Create that volume, or recreate the claim for ${near}${command === undefined ? '' : `: ${command}`}`,
  };
}

/** The claim names a volume that is missing, that another claim has, or that does not fit. */
export function checkNamedVolume(facts: ClaimFacts): Finding | undefined {
  const { claim, volume } = facts;
  const { volumeName: name = '' } = claim.spec;
  if (name === '') return undefined;
  const held = { state: 'stuck', cause: 'waits-for-volume' } as const;
  if (volume?.kind === 'unreadable') return unreadVolume(name, volume.why, facts);
  const existing = found(volume);
  if (existing === undefined) {
    return { ...held, ...missingVolume(name, facts) };
  }
  if (existing.spec.claimRef !== undefined && !refersTo(existing.spec.claimRef, claim)) {
    return { ...held, ...takenVolume(claim, existing) };
  }
  // the binder does not compare a volume that names the claim
  const lacks = existing.spec.claimRef === undefined ? differencesOfNamed(claim, existing) : [];
  if (lacks.length === 0) return undefined;
  return {
    ...held,
    message: `The claim names PersistentVolume ${name}, which does not fit: ${textOf(lacks)}.`,
    cure: cureOf(lacks, 'Recreate the claim so that it fits, or name another volume'),
  };
}

/** In the words of kube-controller-manager, which sees the volume. */
function unreadVolume(name: string, why: string, { events, nowMs }: ClaimFacts): Finding {
  const words = binderWords(events, ['FailedBinding', 'VolumeMismatch'], nowMs);
  if (words === undefined) {
    return { state: 'unknown', detail: `the claim names PersistentVolume ${name}: ${why}`, ends: true };
  }
  return {
    state: 'stuck',
    cause: 'waits-for-volume',
    message: `The claim names PersistentVolume ${name}. ${words}`,
    cure: 'Recreate the claim for another volume; or have somebody who may read PersistentVolumes see what that one is bound to',
  };
}

function takenVolume(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
): Required<Pick<Holding, 'message' | 'cure'>> {
  const { metadata, spec, status } = volume;
  const { namespace = '', name = '', uid } = spec.claimRef ?? {};
  const isStale = namespace === claim.metadata.namespace && name === claim.metadata.name;
  const phase = status?.phase ?? 'taken';
  const of = isStale ? 'an earlier claim of the same name' : `claim ${namespace}/${name}`;
  const toDelete = phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Delete';
  const warning = toDelete ? ' Its reclaim policy is Delete: its storage is being deleted.' : '';
  const isReserved = phase === 'Available' && uid === undefined;
  return {
    message: `The claim names PersistentVolume ${metadata.name}, which is ${phase} for ${of}.${warning}`,
    cure: isStale
      ? reuseCure(volume, '/spec/claimRef/uid')
      : phase === 'Released'
        ? reuseCure(volume)
        : isReserved
          ? freeCure(volume)
          : 'Recreate the claim for another volume. For a share that claims of several namespaces use, each needs a PersistentVolume of its own, with the same server and path, or driver and another volumeHandle where the driver permits that',
  };
}

/** Labels of a volume that the claim names do not count. */
function differencesOfNamed(claim: PersistentVolumeClaim, volume: PersistentVolume): Difference[] {
  const { selector: _selector, ...spec } = claim.spec;
  return differences({ ...claim, spec }, { ...volume, status: { ...volume.status, phase: 'Available' } });
}

function textOf(lacks: readonly Difference[]): string {
  return lacks.map(({ text }) => text).join('; ');
}

function cureOf(lacks: readonly Difference[], several: string): string {
  const [first] = lacks;
  return lacks.length === 1 && first !== undefined ? first.cure : several;
}

const creationCure = 'Create a PersistentVolume of this class that fits, or recreate the claim with another class';

export function checkEmptyClass(facts: ClaimFacts): Finding | undefined {
  if (className(facts.claim) !== '') return undefined;
  const held = staticOnly('The claim has storageClassName "", so no volume is provisioned for it.', facts);
  return held.cure === creationCure ? withDefaultClass(held, facts) : held;
}

/** "" is not the same as no class (Kubernetes page "Persistent Volumes", "Class"). */
function withDefaultClass(held: Holding, { claim, otherClasses }: ClaimFacts): Holding {
  const usual = defaultClass(found(otherClasses?.classes) ?? [])?.metadata.name;
  const other = usual === undefined ? undefined : otherClassCure(claim, otherClasses ?? {}, usual);
  if (usual === undefined || other === undefined) return held;
  return {
    ...held,
    message: `${held.message} Without storageClassName it would get the default class ${usual}.`,
    cure: `Create a PersistentVolume of this class that fits, or ${other}`,
  };
}

/** A class without a provisioner that also waits for a Pod is explained by that Pod. */
export function checkHasProvisioner(facts: ClaimFacts): Finding | undefined {
  const ofClass = found(facts.storageClass);
  if (ofClass?.provisioner !== noProvisioner || waitsForConsumer(facts.claim, ofClass)) return undefined;
  return staticOnly(`The class has the provisioner ${noProvisioner}, which provisions no volumes.`, facts);
}

/** Existing volumes may have a class of which there is no object: then none is needed. */
export function checkClassOfVolumes(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, staticVolumes } = facts;
  const name = className(claim);
  const volumes = found(staticVolumes?.volumes) ?? [];
  // that volumes were provisioned with the class shows that there was such a class, not that none is needed
  const isStatic = volumes.some(
    (each) => classOfStatic(each) === name && each.metadata.annotations?.[provisionedByKey] === undefined,
  );
  if (name === '' || storageClass?.kind !== 'missing' || !isStatic) return undefined;
  return staticOnly(`StorageClass ${name} does not exist, so no volume is provisioned for the claim.`, facts);
}

/** An administrator creates the volumes of the class (Kubernetes page "Storage Classes", "Local"). */
function staticOnly(message: string, facts: ClaimFacts): Holding {
  const waits = `${message} It waits for an existing PersistentVolume that fits`;
  return (
    nearHolding('static-class', waits, facts) ?? {
      state: 'stuck',
      cause: 'static-class',
      message: `${waits}${noneText(facts)}.`,
      cure: creationCure,
    }
  );
}

/** Undefined where no volume is near. */
function nearHolding(cause: 'static-class' | 'selector', message: string, facts: ClaimFacts): Holding | undefined {
  const { claim, staticVolumes, nowMs } = facts;
  const near = nearVolume(claim, found(staticVolumes?.volumes) ?? []);
  if (near === undefined) return undefined;
  const { volume, lacks } = near;
  const { name } = volume.metadata;
  if (lacks.length > 0) {
    return {
      ...{ state: 'stuck', cause },
      message: `PersistentVolume ${name} would fit the claim, but ${textOf(lacks)}. ${message}.`,
      cure: cureOf(lacks, 'Recreate the claim so that it fits, or create another PersistentVolume'),
    };
  }
  const ageMs = nowMs - Math.max(lastChangeMs(claim), lastChangeMs(volume));
  const isLate = ageMs > controllerLateMs;
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'volume-made',
    message: `PersistentVolume ${name} fits the claim, and kube-controller-manager has not bound them ${isLate ? `for ${durationText(ageMs)}` : 'yet'}.`,
    cure: isLate ? controllerManagerCure : 'Nothing: it takes a moment',
  };
}

function noneText({ claim, staticVolumes }: ClaimFacts): string {
  if (staticVolumes === undefined) return '';
  const { volumes, isAll } = staticVolumes;
  if (volumes.kind === 'unreadable') return `; which there are cannot be seen: ${volumes.why}`;
  const free = (found(volumes) ?? []).filter(({ status }) => status?.phase !== 'Bound');
  const ofClass = free.filter((volume) => classOfStatic(volume) === className(claim));
  const among = isAll ? '' : ' among the first of very many';
  if (ofClass.length === 0) return `; there is none of its class that is not bound${among}`;
  return `; of those of its class that are not bound none comes near it (${ofClass.length})${among}`;
}

/** What the scheduler says of a Pod whose claim no existing volume can serve on any node. */
const noVolume = "didn't find available persistent volumes to bind";

/** A Pod waits for an existing volume: of a class that waits for Pods only the scheduler binds one. */
export function checkStaticConsumer(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, staticVolumes, pods } = facts;
  const ofClass = found(storageClass);
  if (ofClass?.provisioner !== noProvisioner || !waitsForConsumer(claim, ofClass)) return undefined;
  const refused = (found(pods) ?? []).find(({ status }) =>
    status?.conditions?.some(({ type, message = '' }) => type === 'PodScheduled' && message.includes(noVolume)),
  );
  const volumes = found(staticVolumes?.volumes);
  if (volumes?.some(({ spec }) => refersTo(spec.claimRef, claim)) === true) {
    return nearHolding('static-class', 'Its class provisions no volumes', facts); // no Pod is needed to bind that one
  }
  if (refused === undefined || volumes === undefined) return undefined;
  const who = `Pod ${refused.metadata.name} uses the claim, and its class provisions no volumes`;
  const near = nearVolume(claim, volumes);
  if (near === undefined || near.lacks.length > 0) return staticOnly(`${who}.`, facts);
  return awayHolding(who, refused, facts);
}

/** Volumes that fit, all on nodes that do not exist, or that the Pod may not use; undefined where it may use one. */
function awayHolding(who: string, pod: Pod, { claim, staticVolumes }: ClaimFacts): Finding | undefined {
  const { volumes, hosts } = staticVolumes ?? {};
  const fitting = (found(volumes) ?? []).filter((each) => differences(claim, each).length === 0);
  const [first] = fitting;
  if (first === undefined || fitting.some((each) => hostsOf(each).length === 0)) return undefined;
  if (hosts?.kind !== 'found' || hosts.value.some((node) => isForNode(pod, node))) return undefined;
  const { name } = first.metadata;
  const others = fitting.length - 1;
  const base = `${who}. PersistentVolume ${name} fits, but is only usable on node ${hostsOf(first).join(', ')}, which`;
  const held = { state: 'stuck', cause: 'static-class' } as const;
  return hosts.value.length > 0
    ? {
        ...held,
        message: `${base} the Pod's nodeSelector or affinity excludes${others === 0 ? '' : `; so are ${others} more, on nodes that it excludes as well`}.`,
        cure: 'Let the Pod run on that node (its nodeSelector and affinity), or create a PersistentVolume on a node that it may use',
      }
    : {
        ...held,
        message: `${base} does not exist${others === 0 ? '' : `, and so are ${others} others`}.`,
        cure: `Bring the node back under that name. If it is gone for good, so is a local volume: create a PersistentVolume on another node, and delete this one: kubectl delete pv ${name}`,
      };
}

const selectorCure = 'Recreate the claim without spec.selector, or create a PersistentVolume that fits it';

/** No volume is provisioned for a claim with a selector: it can only be bound to an existing volume. */
export const selector = defineCause({
  name: 'selector',
  failures: [{ pattern: /^claim Selector is not supported/, cure: selectorCure }],
});

/** A label that Velero selects by in claims whose data it restores, so that nothing is provisioned meanwhile. */
const veleroKey = 'velero.io/dynamic-pv-restore';
/** Velero moves the data of a volume in less, as a rule, in milliseconds. */
const restoredWithinMs = 60 * 60_000;

function restoredByVelero({ claim, nowMs }: ClaimFacts): Finding {
  const ageMs = nowMs - Date.parse(claim.metadata.creationTimestamp ?? '');
  const isLate = ageMs > restoredWithinMs;
  const look = 'See how far that is, and its error: kubectl get datadownloads.velero.io -A';
  return {
    state: isLate ? 'stuck' : 'waiting',
    cause: 'selector',
    message: `Velero has been restoring the claim for ${durationText(ageMs)}: it set the selector, and binds the claim to the restored volume once its DataDownload is complete.`,
    cure: isLate ? look : lasting('Nothing yet; without the selector the claim would get an empty volume', look),
  };
}

export function checkSelector(facts: ClaimFacts): Finding | undefined {
  if (facts.claim.spec.selector === undefined) return undefined;
  const { matchLabels }: { matchLabels?: Record<string, string> | null } = facts.claim.spec.selector;
  if (matchLabels?.[veleroKey] !== undefined) return restoredByVelero(facts);
  const base = 'The claim has a selector, so no volume is provisioned for it, and it waits for an existing one';
  return (
    nearHolding('selector', base, facts) ?? {
      state: 'stuck',
      cause: 'selector',
      message: `The claim has a selector, which matches existing volumes only. None of them fits, and no volume is provisioned for such a claim.`,
      cure: selectorCure,
    }
  );
}
