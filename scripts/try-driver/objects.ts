/** The objects that the story makes, and waiting for what becomes of them. */
/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import type { V1PersistentVolume, V1PersistentVolumeClaim, V1StorageClass } from '@kubernetes/client-node';
import { boundClaim, type BoundClaim, eventsOf, assertVolumeGone, ifFound } from '../../test/support/admin.ts';
import { volumeSnapshotContentKind, volumeSnapshotKind } from '../../test/support/custom-kinds.ts';
import { eventually } from '../../test/support/eventually.ts';
import { namespace, nodeName, type TriedStage } from './stage.ts';

const secretName = 'driver-secret';
const secretKeys = ['provisioner', 'controller-expand', 'node-stage'];
/** How long a step may take, in milliseconds. */
const patience = { withinMs: 45_000 };

/** The Secret that the classes name, if the driver needs one. */
export async function createSecret({ admin, options }: TriedStage): Promise<void> {
  const { secret } = options.profile;
  if (secret === undefined) return;
  await admin.core.createNamespacedSecret({
    namespace,
    body: { metadata: { name: secretName }, stringData: secret },
  });
}

/** A class of the driver, with the parameters that it always needs. */
export async function createClass(stage: TriedStage, name: string, more: Partial<V1StorageClass> = {}): Promise<void> {
  const { profile } = stage.options;
  const secrets = profile.secret === undefined ? [] : secretKeys.flatMap(secretParameters);
  await stage.admin.storage.createStorageClass({
    body: {
      metadata: { name },
      provisioner: stage.info.name,
      ...more,
      parameters: { ...profile.parameters, ...Object.fromEntries(secrets), ...more.parameters },
    },
  });
}

function secretParameters(use: string): [string, string][] {
  const prefix = `csi.storage.k8s.io/${use}-secret`;
  return [
    [`${prefix}-name`, secretName],
    [`${prefix}-namespace`, namespace],
  ];
}

/** What a claim may have besides name and class. */
export type ClaimSpec = Partial<V1PersistentVolumeClaim['spec']> & { size?: string; onNode?: boolean };

/** A claim of 1Gi. Its ids are known to the comparison from then on. */
export async function createClaim(
  { admin, names }: TriedStage,
  name: string,
  className: string,
  { size = '1Gi', onNode = false, ...spec }: ClaimSpec = {},
): Promise<V1PersistentVolumeClaim> {
  const claim = await admin.core.createNamespacedPersistentVolumeClaim({
    namespace,
    body: {
      metadata: { name, ...(onNode && { annotations: { 'volume.kubernetes.io/selected-node': nodeName } }) },
      spec: {
        storageClassName: className,
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: size } },
        ...spec,
      },
    },
  });
  const uid = claim.metadata?.uid ?? '';
  names.set(uid, `<uid of ${name}>`);
  names.set(`pvc-${uid}`, `<volume of ${name}>`);
  return claim;
}

/** Waits until a claim is bound. */
export async function bound(stage: TriedStage, name: string): Promise<BoundClaim> {
  const found = await eventually(() => boundClaim(stage.admin, namespace, name), withHope(stage));
  stage.names.set(found.volume.metadata?.uid ?? '', `<uid of the volume of ${name}>`);
  learnHandles(stage);
  return found;
}

/** Volume ids as the driver has given them, so that another one in a PersistentVolume is seen. */
export function learnHandles({ csi, names }: TriedStage): void {
  for (const { method, request, response } of csi.calls) {
    const { volume_id: handle } = (response?.['volume'] ?? {}) as { volume_id?: string };
    const volume = names.get(request['name'] as string);
    if (method === 'CreateVolume' && handle !== undefined && volume !== undefined)
      names.set(handle, volume.replace('<volume of', '<handle of'));
  }
}

export async function deleteClaim({ admin }: TriedStage, name: string): Promise<void> {
  await ifFound(admin.core.deleteNamespacedPersistentVolumeClaim({ name, namespace }));
}

/** Waits until a PersistentVolume is gone. */
export async function volumeGone(stage: TriedStage, { volume }: BoundClaim): Promise<void> {
  await eventually(() => assertVolumeGone(stage.admin, volume.metadata?.name ?? ''), withHope(stage));
}

/** Waits until a PersistentVolume has a phase. */
export async function volumeIs(stage: TriedStage, { volume }: BoundClaim, phase: string): Promise<V1PersistentVolume> {
  return await eventually(async () => {
    const now = await stage.admin.core.readPersistentVolume({ name: volume.metadata?.name ?? '' });
    if (now.status?.phase !== phase) throw new Error(`the volume is ${now.status?.phase ?? ''}, not ${phase}`);
    return now;
  }, withHope(stage));
}

/** Waits until a claim is bound, or has an event of a failed attempt. */
export async function boundOrFailed(stage: TriedStage, claim: V1PersistentVolumeClaim): Promise<'bound' | 'failed'> {
  const { name = '', uid = '' } = claim.metadata ?? {};
  return await eventually(async () => {
    const { status } = await stage.admin.core.readNamespacedPersistentVolumeClaim({ name, namespace });
    if (status?.phase === 'Bound') return 'bound';
    const events = await eventsOf(stage.admin, namespace, uid);
    if (events.some(({ reason }) => reason === 'ProvisioningFailed')) return 'failed';
    throw new Error(`claim ${name} is neither bound nor has it failed`);
  }, withHope(stage));
}

/** Takes a snapshot as the snapshotter does: asks the driver, and makes the two objects. */
export async function createSnapshot(stage: TriedStage, name: string, source: BoundClaim): Promise<void> {
  const volumeHandle = source.volume.spec?.csi?.volumeHandle ?? '';
  const { profile } = stage.options;
  const { snapshot } = (await stage.driver.call('CreateSnapshot', {
    source_volume_id: volumeHandle,
    name: `snapshot-${name}`,
    secrets: profile.secret ?? {},
  })) as { snapshot: { snapshot_id: string; size_bytes?: string } };
  stage.names.set(snapshot.snapshot_id, `<handle of ${name}>`);
  await createSnapshotObjects(stage, name, {
    claimName: source.claim.metadata?.name ?? '',
    volumeHandle,
    snapshotHandle: snapshot.snapshot_id,
    restoreSize: Number(snapshot.size_bytes ?? 0),
  });
}

interface SnapshotFacts {
  claimName: string;
  volumeHandle: string;
  snapshotHandle: string;
  /** In bytes. */
  restoreSize: number;
}

async function createSnapshotObjects(
  { admin: { custom }, info }: TriedStage,
  name: string,
  { claimName, volumeHandle, snapshotHandle, restoreSize }: SnapshotFacts,
): Promise<void> {
  const apiVersion = 'snapshot.storage.k8s.io/v1';
  const contentName = `content-${name}`;
  const created = (await custom.createNamespacedCustomObject({
    ...resource(volumeSnapshotKind),
    namespace,
    body: {
      apiVersion,
      kind: 'VolumeSnapshot',
      metadata: { name },
      spec: { source: { persistentVolumeClaimName: claimName } },
    },
  })) as { metadata: { uid: string } };
  const content = (await custom.createClusterCustomObject({
    ...resource(volumeSnapshotContentKind),
    body: {
      apiVersion,
      kind: 'VolumeSnapshotContent',
      metadata: { name: contentName },
      spec: {
        driver: info.name,
        deletionPolicy: 'Delete',
        source: { volumeHandle },
        sourceVolumeMode: 'Filesystem',
        volumeSnapshotRef: { apiVersion, kind: 'VolumeSnapshot', namespace, name, uid: created.metadata.uid },
      },
    },
  })) as object;
  await custom.replaceClusterCustomObjectStatus({
    ...resource(volumeSnapshotContentKind),
    name: contentName,
    body: { ...content, status: { snapshotHandle, readyToUse: true, restoreSize } },
  });
  await custom.replaceNamespacedCustomObjectStatus({
    ...resource(volumeSnapshotKind),
    namespace,
    name,
    body: {
      ...created,
      status: { boundVolumeSnapshotContentName: contentName, readyToUse: true, restoreSize: String(restoreSize) },
    },
  });
}

function resource({ group, version, plural }: { group: string; version: string; plural: string }) {
  return { group, version, plural };
}

function withHope({ sidecar }: TriedStage): { withinMs: number; hopeless: () => string | undefined } {
  return { ...patience, hopeless: () => (sidecar().running() ? undefined : 'the sidecar has ended') };
}
