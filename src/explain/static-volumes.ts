/** Existing volumes for a claim that nothing is provisioned for: which of them almost fit, and what they lack. */
import { editDistance } from '../base/edit-distance.ts';
import { nearestName } from '../base/near-name.ts';
import { quantityBytes } from '../base/quantity.ts';
import { shellCommand } from '../base/shell-word.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import { className } from '../provision/claim-fields.ts';
import {
  betaStorageClassKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumes,
  provisionedByKey,
  type StorageClass,
} from '../provision/objects.ts';
import { nodes } from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';

/** Volumes that are read: a cluster may have very many, and the API server selects them by nothing but name and labels. */
const maxRead = 500;
const hostnameKey = 'kubernetes.io/hostname';

/** metav1 LabelSelector. */
interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

export interface StaticVolumes {
  volumes: Reading<PersistentVolume[]>;
  /** Whether the cluster has no others. */
  isAll: boolean;
  /** The nodes to which the ones that fit are tied by their host name; read where a Pod waits for one of these. */
  hosts?: Reading<KubeObject[]> | undefined;
}

/** What a volume lacks for a claim. */
export interface Difference {
  /** As a clause, such as `it has 1Gi, and the claim requests 2Gi`. */
  text: string;
  /** Without a full stop. */
  cure: string;
}

/** A volume, and what it lacks; nothing: the binder may bind it. */
export interface NearVolume {
  volume: PersistentVolume;
  lacks: readonly Difference[];
}

/** For classes of this provisioner no volumes are provisioned. */
export const noProvisioner = 'kubernetes.io/no-provisioner';

/** Whether no volume is provisioned for a claim: for want of a class, of its class, of one that does not exist, or because of its selector. */
export function needsExisting(claim: PersistentVolumeClaim, storageClass: Reading<StorageClass> | undefined): boolean {
  const { metadata, spec } = claim;
  const isNamed = metadata.annotations?.[betaStorageClassKey] !== undefined || spec.storageClassName !== undefined;
  const isWithoutClass = isNamed && className(claim) === '';
  const isMissing = storageClass?.kind === 'missing';
  return (
    !isNamed ||
    isWithoutClass ||
    isMissing ||
    spec.selector !== undefined ||
    found(storageClass)?.provisioner === noProvisioner
  );
}

/** At most two requests, or three where the claim waits for a Pod. */
export async function readStaticVolumes(
  claim: PersistentVolumeClaim,
  { reader, withHosts }: { reader: ClusterReader; withHosts: boolean },
): Promise<StaticVolumes> {
  const labelSelector = selectorText(claim.spec.selector);
  const read = (options: { labelSelector?: string }): Promise<Reading<PersistentVolume[]>> =>
    reader.list<PersistentVolume>(persistentVolumes, { limit: maxRead, ...options });
  const selected = labelSelector === '' ? undefined : await read({ labelSelector });
  const volumes = selected === undefined || found(selected)?.length === 0 ? await read({}) : selected;
  const isAll = (found(volumes)?.length ?? maxRead) < maxRead;
  if (!withHosts) return { volumes, isAll };
  const hosts = (found(volumes) ?? [])
    .filter((volume) => isFree(claim, volume) && differences(claim, volume).length === 0)
    .flatMap(hostsOf);
  if (hosts.length === 0) return { volumes, isAll };
  const anyHost = `${hostnameKey} in (${[...new Set(hosts)].slice(0, maxRead).join(',')})`;
  return { volumes, isAll, hosts: await reader.list(nodes, { labelSelector: anyHost }) };
}

function selectorText(selector: LabelSelector | undefined): string {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const expressions = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator === 'In' ? 'in' : 'notin'} (${values.join(',')})`;
  });
  return [...labels, ...expressions].join(',');
}

/** The volume that was most likely meant for the claim: one that is reserved for it, or one that lacks at most one thing. */
export function nearVolume(claim: PersistentVolumeClaim, volumes: readonly PersistentVolume[]): NearVolume | undefined {
  const free = volumes
    .filter((volume) => isFree(claim, volume))
    .map((volume) => ({ volume, lacks: differences(claim, volume) }));
  /** One whose class alone differs is meant only where that may be a slip. */
  const isMeant = ({ volume, lacks }: NearVolume): boolean => {
    const [wanted, has] = [className(claim), classOfStatic(volume)];
    return (
      lacks.length === 1 && (wanted === has || wanted === '' || has === '' || nearestName(wanted, [has]) !== undefined)
    );
  };
  const distance = ({ volume }: NearVolume): number => editDistance(classOfStatic(volume), className(claim));
  return (
    free.find(({ volume }) => refersTo(volume.spec.claimRef, claim)) ??
    free.find(({ lacks }) => lacks.length === 0) ??
    free.filter(isMeant).toSorted((a, b) => distance(a) - distance(b))[0]
  );
}

/** The host names of the nodes to which a volume is tied; empty where it is not, or by other labels. */
export function hostsOf({ spec }: PersistentVolume): string[] {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  return terms.flatMap(({ matchExpressions = [] }) =>
    matchExpressions.flatMap(({ key, operator, values = [] }) =>
      key === hostnameKey && operator === 'In' ? values : [],
    ),
  );
}

/** Whether it may be meant for the claim: not one that another claim has, nor one that was provisioned for another. */
function isFree(claim: PersistentVolumeClaim, { metadata, spec, status }: PersistentVolume): boolean {
  const { claimRef } = spec;
  if (refersTo(claimRef, claim)) return true;
  const isNamesake = claimRef?.namespace === claim.metadata.namespace && claimRef?.name === claim.metadata.name;
  const isProvisioned = metadata.annotations?.[provisionedByKey] !== undefined;
  return status?.phase !== 'Bound' && (claimRef === undefined || isNamesake || !isProvisioned);
}

export function refersTo(
  ref: { namespace?: string; name?: string; uid?: string } | undefined,
  claim: PersistentVolumeClaim,
): boolean {
  const { namespace, name, uid } = claim.metadata;
  return ref?.namespace === namespace && ref?.name === name && (ref.uid === undefined || ref.uid === uid);
}

/**
 * As the binder compares them (Kubernetes page "Persistent Volumes", "Binding"): class and labels of a volume that is reserved for the
 * claim do not count.
 */
export function differences(claim: PersistentVolumeClaim, volume: PersistentVolume): Difference[] {
  const { spec } = volume;
  const isReserved = refersTo(spec.claimRef, claim);
  const lacks = [
    deletionOf(volume),
    isReserved ? undefined : otherClaimOf(claim, volume),
    sizeOf(claim, volume),
    accessModesOf(claim, volume),
    volumeModeOf(claim, volume),
    attributesClassOf(claim, volume),
    isReserved ? undefined : classOf(claim, volume),
    isReserved ? undefined : labelsOf(claim, volume),
  ];
  return lacks.filter((each) => each !== undefined);
}

function deletionOf({ metadata: { name, deletionTimestamp } }: PersistentVolume): Difference | undefined {
  if (deletionTimestamp === undefined) return undefined;
  return { text: 'it is being deleted', cure: `See what holds it: csi-provisioner why pv/${name}` };
}

function otherClaimOf(claim: PersistentVolumeClaim, volume: PersistentVolume): Difference | undefined {
  const { claimRef } = volume.spec;
  const phase = volume.status?.phase ?? 'Pending';
  if (claimRef === undefined) {
    if (phase === 'Available' || phase === 'Pending') return undefined; // a new one becomes Available
    return { text: `it is ${phase}, not Available`, cure: `See why: csi-provisioner why pv/${volume.metadata.name}` };
  }
  const of = `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`;
  if (claimRef.namespace === claim.metadata.namespace && claimRef.name === claim.metadata.name) {
    return {
      text: `it is ${phase}: it is still reserved for an earlier claim of the same name`,
      cure: reuseCure(volume, '/spec/claimRef/uid'),
    };
  }
  return phase === 'Released'
    ? { text: `it is Released: it is still reserved for claim ${of}, which is gone`, cure: reuseCure(volume) }
    : { text: `it is reserved for claim ${of} (spec.claimRef)`, cure: freeCure(volume) };
}

/** Has a volume offered to any claim. The storage of one that is to be deleted is kept from then on. */
export function reuseCure(volume: PersistentVolume, path = '/spec/claimRef'): string {
  return `If its data may go to the next claim: ${freeCommand(volume, path)}`;
}

/** The same of one that is reserved for a claim that never had it. */
export function freeCure(volume: PersistentVolume): string {
  return `If that claim does not need it: ${freeCommand(volume, '/spec/claimRef')}`;
}

/** Removes a field of the reservation; the storage is kept from then on. */
export function freeCommand({ metadata, spec }: PersistentVolume, path: string): string {
  const keep = { op: 'replace', path: '/spec/persistentVolumeReclaimPolicy', value: 'Retain' };
  const isKept = spec.persistentVolumeReclaimPolicy === 'Retain';
  return volumePatch(metadata.name, [...(isKept ? [] : [keep]), { op: 'remove', path }]);
}

/** Keeps the storage of a volume when its claim or itself is deleted. */
export function retainCommand(name: string): string {
  return volumePatch(name, { spec: { persistentVolumeReclaimPolicy: 'Retain' } });
}

/** @param change - operations of a JSON patch, or a merge patch. */
export function volumePatch(name: string, change: object): string {
  const type = Array.isArray(change) ? ['--type=json'] : [];
  const command = shellCommand(['kubectl', 'patch', 'pv', name, ...type, '-p', JSON.stringify(change)]);
  return command ?? `kubectl edit pv ${name}`;
}

function sizeOf(claim: PersistentVolumeClaim, { spec }: PersistentVolume): Difference | undefined {
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  const offered = spec.capacity?.['storage'] ?? 0;
  if (quantityBytes(offered) >= quantityBytes(requested)) return undefined;
  return {
    text: `it has ${offered}, and the claim requests ${requested}`,
    cure: `Recreate the claim with at most ${offered}, or create a larger PersistentVolume for it`,
  };
}

function accessModesOf(claim: PersistentVolumeClaim, { spec }: PersistentVolume): Difference | undefined {
  const offered = spec.accessModes ?? [];
  const missing = (claim.spec.accessModes ?? []).filter((mode) => !offered.includes(mode));
  if (missing.length === 0) return undefined;
  return {
    text: `it does not offer ${missing.join(', ')}`,
    cure: `Recreate the claim with ${offered.join(', ')}, or correct spec.accessModes of the volume if its storage can do more`,
  };
}

function volumeModeOf(claim: PersistentVolumeClaim, { spec }: PersistentVolume): Difference | undefined {
  const [requested, offered] = [claim.spec.volumeMode ?? 'Filesystem', spec.volumeMode ?? 'Filesystem'];
  if (requested === offered) return undefined;
  return {
    text: `its volumeMode is ${offered}, and the claim requests ${requested}`,
    cure: `Recreate the claim with volumeMode ${offered}, or the volume with ${requested}: neither can be edited`,
  };
}

function attributesClassOf(claim: PersistentVolumeClaim, { spec }: PersistentVolume): Difference | undefined {
  const [requested, offered] = [claim.spec.volumeAttributesClassName ?? '', spec.volumeAttributesClassName ?? ''];
  if (requested === offered) return undefined;
  return {
    text: `its volumeAttributesClassName is "${offered}", and the claim's is "${requested}"`,
    cure:
      offered === ''
        ? 'Recreate the claim without spec.volumeAttributesClassName'
        : `Recreate the claim with volumeAttributesClassName ${offered}`,
  };
}

/** The class of a volume: the beta annotation, else the field. */
export function classOfStatic({ metadata, spec }: PersistentVolume): string {
  return metadata.annotations?.[betaStorageClassKey] ?? spec.storageClassName ?? '';
}

function classOf(claim: PersistentVolumeClaim, volume: PersistentVolume): Difference | undefined {
  const [requested, offered] = [className(claim), classOfStatic(volume)];
  if (requested === offered) return undefined;
  const { name, annotations } = volume.metadata;
  const isEdited = annotations?.[betaStorageClassKey] === undefined;
  return {
    text: `its class is "${offered}", and the claim's is "${requested}"`,
    cure: isEdited
      ? `If the volume is for this claim, give it that class: ${volumePatch(name, { spec: { storageClassName: requested } })}`
      : `Correct the annotation ${betaStorageClassKey} of the volume`,
  };
}

function labelsOf(claim: PersistentVolumeClaim, { metadata }: PersistentVolume): Difference | undefined {
  const { matchLabels = {}, matchExpressions = [] } = (claim.spec.selector ?? {}) as LabelSelector;
  const labels = metadata.labels ?? {};
  const missing = Object.entries(matchLabels).filter(([key, value]) => labels[key] !== value);
  const unmet = matchExpressions.filter((each) => !isMet(each, labels));
  if (missing.length === 0 && unmet.length === 0) return undefined;
  const wanted = missing.map(([key, value]) => `${key}=${value}`);
  const all = [...wanted, ...unmet.map(({ key, operator }) => `${key} (${operator})`)];
  const command = shellCommand(['kubectl', 'label', 'pv', metadata.name, ...wanted, '--overwrite']);
  return {
    text: `its labels do not match spec.selector: ${all.join(', ')}`,
    cure:
      unmet.length === 0 && command !== undefined
        ? `If the volume is for this claim: ${command}`
        : 'Give the volume labels that match spec.selector of the claim, or recreate the claim with another selector',
  };
}

function isMet(
  { key, operator, values = [] }: { key: string; operator: string; values?: string[] },
  labels: Record<string, string>,
): boolean {
  const value = labels[key];
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  const isIn = value !== undefined && values.includes(value);
  return operator === 'In' ? isIn : !isIn;
}
