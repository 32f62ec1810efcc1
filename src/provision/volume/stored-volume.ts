/** Volumes as the API server has them, and what they have in common with new ones. */
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import { isReduced, type ObjectReference } from '../../kube/kube-object.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import { claimReference } from '../claim-fields.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumes,
  type PersistentVolumeSpec,
  type VolumeSources,
} from '../objects.ts';

/** The name of a new volume is taken by a volume of another claim, or of other storage. */
export class VolumeTakenError extends Error {
  override readonly name = 'VolumeTakenError';
}

/** An API server that does not know the field has dropped the attributes class of a volume; another one knows it. */
export class ClassDroppedError extends Error {
  override readonly name = 'ClassDroppedError';

  constructor({ metadata, spec }: PersistentVolume) {
    super(
      `PersistentVolume ${JSON.stringify(metadata.name)} was saved without its volume attributes class ` +
        `${JSON.stringify(spec.volumeAttributesClassName)}: the API server has the feature VolumeAttributesClass switched off`,
    );
  }
}

/** Whether a volume has the attributes class that it was created with, or needs none any more as it is bound all the same. */
export function hasItsAttributesClass(stored: PersistentVolume, made: PersistentVolume): boolean {
  const { volumeAttributesClassName: wanted = '' } = made.spec;
  return wanted === '' || (stored.spec.volumeAttributesClassName ?? '') !== '' || stored.status?.phase === 'Bound';
}

/** The fields that identify the storage, by kind of source; the other fields say how it is used. */
const storageFields: Record<keyof VolumeSources, readonly string[]> = {
  csi: ['driver', 'volumeHandle'],
  nfs: ['server', 'path'],
  hostPath: ['path'],
  local: ['path'],
  iscsi: ['targetPortal', 'iqn', 'lun'],
  fc: ['targetWWNs', 'lun', 'wwids'],
  flexVolume: ['driver', 'options'],
  awsElasticBlockStore: ['volumeID', 'partition'],
  azureDisk: ['diskURI'],
  azureFile: ['secretNamespace', 'secretName', 'shareName'],
  cinder: ['volumeID'],
  gcePersistentDisk: ['pdName', 'partition'],
  portworxVolume: ['volumeID'],
  vsphereVolume: ['volumePath'],
};

/**
 * The volume of this name as the API server has it now. Read by a list, which needs no permission beyond those of the caches.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read.
 */
export async function storedVolume(
  client: KubeClient,
  name: string,
  signal: AbortSignal | undefined,
): Promise<PersistentVolume | undefined> {
  const options = { fieldSelector: `metadata.name=${name}`, signal };
  const found = await client.list<PersistentVolume>(persistentVolumes, options);
  return found.find(({ metadata }) => metadata.name === name);
}

/** A cached volume with all its parts: read live, as by `storedVolume`, where the cached form lacks some. @throws as `storedVolume`. */
export async function wholeVolume(
  client: KubeClient,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume | undefined> {
  return isReduced(volume) ? await storedVolume(client, volume.metadata.name, signal) : volume;
}

/**
 * Checks that a volume that is stored under the name of a new one is that very volume, saved by an earlier attempt.
 *
 * @throws {VolumeTakenError} when it is not.
 */
export function checkStored(stored: PersistentVolume, made: PersistentVolume): void {
  const name = JSON.stringify(made.metadata.name);
  if (!isReserved(stored.spec.claimRef, made.spec.claimRef)) {
    const owner = claimText(stored.spec.claimRef);
    throw new VolumeTakenError(
      `PersistentVolume ${name} exists already and is for ${owner}. Delete it if nobody uses it, or recreate the claim`,
    );
  }
  for (const kind of Object.keys(storageFields) as (keyof VolumeSources)[]) {
    const [there, ours] = [storageText(stored.spec, kind), storageText(made.spec, kind)];
    if (ours === undefined || there === ours) continue;
    throw new VolumeTakenError(
      `PersistentVolume ${name} exists already with other storage: ${there ?? `no ${kind}`}. ` +
        `What was provisioned now is in no volume: ${ours}`,
    );
  }
}

/** The claim has got its volume from another instance, with a backend of its own. */
export function madeElsewhere({ metadata: { name } }: PersistentVolume): VolumeTakenError {
  return new VolumeTakenError(
    `PersistentVolume ${JSON.stringify(name)} exists already with the storage of another instance of this provisioner. ` +
      'What was provisioned now, here, is in no volume',
  );
}

/**
 * Whether a volume's claim reference names this claim: by UID; that of a volume which an administrator reserved by hand
 * names no UID (Kubernetes, "Reserving a PersistentVolume").
 */
function isReserved(reference: ObjectReference | undefined, claim: ObjectReference | undefined): boolean {
  if ((reference?.uid ?? '') !== '') return reference?.uid === claim?.uid;
  return reference !== undefined && reference.namespace === claim?.namespace && reference.name === claim?.name;
}

function claimText(reference: ObjectReference | undefined): string {
  if (reference === undefined) return 'no claim';
  const { namespace = '', name = '', uid = '' } = reference;
  return `claim ${namespace}/${name} with UID ${JSON.stringify(uid)}`;
}

/** How log lines name the storage of a volume: the handle of a CSI volume, else its source. @returns undefined where it has none. */
export function storageName({ spec }: PersistentVolume): string | undefined {
  if (spec.csi !== undefined) return spec.csi.volumeHandle;
  const kinds = Object.keys(storageFields) as (keyof VolumeSources)[];
  return kinds.map((kind) => storageText(spec, kind)).find((text) => text !== undefined);
}

function storageText(spec: PersistentVolumeSpec, kind: keyof VolumeSources): string | undefined {
  const source = spec[kind] as Record<string, unknown> | undefined;
  if (source === undefined) return undefined;
  const identity = storageFields[kind].map((field) => [field, sorted(source[field])]);
  return `${kind} ${shortValue(JSON.stringify(Object.fromEntries(identity)), 1024)}`;
}

/** The API server sorts the keys of a map, such as the options of a FlexVolume. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Whether a volume that exists already is reserved for the claim. One whose cached form lacks the reference is read
 * live.
 *
 * @param options.byUid - one that an administrator reserved, by the claim's name alone, does not count. Default false.
 * @throws {ApiError} and {TransportError} when it cannot be read, {Error} when the API server has none: then the claim is to be
 * tried again.
 */
export async function isReservedFor(
  claim: PersistentVolumeClaim,
  volume: PersistentVolume,
  { client, signal, byUid = false }: { client: KubeClient; signal: AbortSignal; byUid?: boolean },
): Promise<boolean> {
  const reference = (await existingWhole(client, volume, signal)).spec.claimRef;
  if (byUid && (reference?.uid ?? '') === '') return false;
  return isReserved(reference, claimReference(claim));
}

/**
 * As `wholeVolume`, for a volume that exists.
 *
 * @throws {ApiError} and {TransportError} when it cannot be read, {Error} when the API server has none.
 */
export async function existingWhole(
  client: KubeClient,
  volume: PersistentVolume,
  signal: AbortSignal,
): Promise<PersistentVolume> {
  const whole = await wholeVolume(client, volume, signal);
  if (whole !== undefined) return whole;
  throw new Error(`PersistentVolume ${JSON.stringify(volume.metadata.name)} is gone, and still in the cache`);
}

/**
 * Whether kube-controller-manager would bind the claim to this volume, which is reserved for it: size, volume mode, access modes
 * and attributes class.
 */
export function canBind({ spec: wanted }: PersistentVolumeClaim, { spec }: PersistentVolume): boolean {
  return (
    quantityBytes(spec.capacity?.['storage'] ?? 0) >= quantityBytes(wanted.resources?.requests?.['storage'] ?? 0) &&
    (spec.volumeMode ?? 'Filesystem') === (wanted.volumeMode ?? 'Filesystem') &&
    (wanted.accessModes ?? []).every((mode) => spec.accessModes?.includes(mode)) &&
    (spec.volumeAttributesClassName ?? '') === (wanted.volumeAttributesClassName ?? '')
  );
}
