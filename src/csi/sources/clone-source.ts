/** Checks of a claim that a new volume is to be cloned from (Kubernetes, "CSI Volume Cloning"). */
import { compareBytes } from '../../base/compare-bytes.ts';
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { Lister } from '../../kube/cache/store.ts';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from '../../provision/objects.ts';
import type { DataSource } from './data-source.ts';
import { addFinalizer, cloningProtection, cloningProtectionFinalizer } from './finalizers.ts';
import { storageRequestBytes } from '../../provision/claim-fields.ts';

export interface CloneOptions {
  client: KubeClient;
  claims: Lister<PersistentVolumeClaim>;
  /** The new claim. */
  claim: PersistentVolumeClaim;
  source: DataSource;
  /** Provisioner of the (translated) class: the source volume must be of the same driver. */
  driverName: string;
  signal?: AbortSignal | undefined;
}

/** A source that passed its checks. */
export interface CloneSource {
  volumeHandle: string;
  /** Of the source claim. */
  uid: string;
}

/**
 * Checks the source claim and its volume.
 *
 * @throws {Error} for the first check that fails; the caller adds where it happened.
 */
export async function cloneSource(options: CloneOptions): Promise<CloneSource> {
  const { claims, claim, source } = options;
  const sourceClaim = claims.get(`${source.namespace}/${source.name}`);
  if (sourceClaim === undefined) {
    throw new Error(
      `error getting PVC ${shortValue(source.name)} (namespace "${claim.metadata.namespace ?? ''}") from api server: ` +
        `persistentvolumeclaim "${shortValue(source.name)}" not found`,
    );
  }
  checkSourceClaim(sourceClaim, claim, source.name);
  const volume = await boundVolume(options, sourceClaim);
  checkVolumeMode(volume, claim);
  return { volumeHandle: volume.spec.csi?.volumeHandle ?? '', uid: sourceClaim.metadata.uid ?? '' };
}

function checkSourceClaim(sourceClaim: PersistentVolumeClaim, claim: PersistentVolumeClaim, name: string): void {
  if (sourceClaim.status?.phase !== 'Bound') {
    throw new Error(
      `the PVC DataSource ${name} must have a status of Bound.  Got ${claimStatusText(sourceClaim.status)}`,
    );
  }
  if (sourceClaim.metadata.deletionTimestamp !== undefined) {
    throw new Error(`the PVC DataSource ${name} is currently being deleted`);
  }
  if (sourceClaim.spec.storageClassName === undefined) {
    throw new Error(`the source PVC (${name}) storageclass cannot be empty`);
  }
  if (claim.spec.storageClassName === undefined) {
    throw new Error(`the requested PVC (${claim.metadata.name}) storageclass cannot be empty`);
  }
  const requested = storageRequestBytes(claim);
  const present = quantityBytes(sourceClaim.spec.resources?.requests?.['storage'] ?? 0);
  if (requested < present) {
    throw new Error(
      'error, new PVC request must be greater than or equal in size to the specified PVC data source, ' +
        `requested ${requested} but source is ${present}`,
    );
  }
  if ((sourceClaim.spec.volumeName ?? '') === '') throw new Error(`volume name is empty in source PVC ${name}`);
}

/**
 * A claim's status the way Go prints the struct, for the one error text that contains it. Fields that are absent on
 * claims that are not bound are printed empty.
 */
function claimStatusText(status: PersistentVolumeClaim['status']): string {
  const { phase = '', accessModes = [], capacity = {} } = status ?? {};
  const sizes = Object.entries(capacity)
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([name, size]) => `${name}:${size}`);
  return `{${phase} [${accessModes.join(' ')}] map[${sizes.join(' ')}] [] map[] map[] <nil> nil}`;
}

/** The source's volume, when it belongs to the driver and to exactly this claim. */
async function boundVolume(
  { client, driverName, signal }: CloneOptions,
  sourceClaim: PersistentVolumeClaim,
): Promise<PersistentVolume> {
  const invalid = 'claim in dataSource not bound or invalid';
  let volume: PersistentVolume;
  try {
    const name = sourceClaim.spec.volumeName ?? '';
    volume = await client.get<PersistentVolume>(persistentVolumes, { name }, { signal });
  } catch (error) {
    throw new Error(invalid, { cause: error });
  }
  const { csi, claimRef } = volume.spec;
  const { uid, namespace, name } = sourceClaim.metadata;
  if (
    csi?.driver !== driverName ||
    claimRef?.uid !== uid ||
    claimRef?.namespace !== namespace ||
    claimRef?.name !== name ||
    volume.status?.phase !== 'Bound'
  ) {
    throw new Error(invalid);
  }
  return volume;
}

function checkVolumeMode(volume: PersistentVolume, claim: PersistentVolumeClaim): void {
  const source = volume.spec.volumeMode === 'Block' ? 'Block' : 'Filesystem';
  const requested = claim.spec.volumeMode === 'Block' ? 'Block' : 'Filesystem';
  if (source === requested) return;
  throw new Error(
    'the source PVC and destination PVCs must have the same volume mode for cloning.  ' +
      `Source is ${source}, but new PVC requested ${requested}`,
  );
}

/**
 * Adds the finalizer that protects the source claim while it is cloned. Nothing is requested when the cached claim already shows
 * the finalizer.
 *
 * @throws `ApiError` as the server gave it, and {Error} when another claim has the name now.
 */
export async function protectCloneSource(
  { namespace, name, uid }: { namespace: string; name: string; uid: string },
  {
    client,
    claims,
    signal,
  }: { client: KubeClient; claims: Lister<PersistentVolumeClaim>; signal?: AbortSignal | undefined },
): Promise<void> {
  const cached = claims.get(`${namespace}/${name}`)?.metadata;
  if (cached?.uid === uid && cached.finalizers?.includes(cloningProtectionFinalizer) === true) return;
  await addFinalizer<PersistentVolumeClaim>({
    client,
    ...cloningProtection,
    object: { namespace, name },
    signal,
    check: (live) => {
      if ((live.metadata.uid ?? '') !== uid)
        throw new Error(`the PVC DataSource ${name} was replaced by another of the same name`);
    },
  });
}
