import { ifFound } from '../support/admin.ts';
import { volumeSnapshotContentKind, volumeSnapshotKind } from '../support/custom-kinds.ts';
import { connectDriver } from '../support/driver-client.ts';
import type { Scene } from '../support/scene.ts';

export const snapshotFinalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';

/** The fields of a VolumeSnapshot that the tests read. */
export interface Snapshot {
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    finalizers?: string[];
    deletionTimestamp?: string;
  };
}

const api = ({ group, version, plural }: typeof volumeSnapshotKind | typeof volumeSnapshotContentKind) => ({
  group,
  version,
  plural,
});

/**
 * Takes a snapshot of a volume and makes the objects of it, bound and ready, as the snapshot controller and the
 * snapshotter sidecar would.
 */
export async function takeSnapshot(
  scene: Scene,
  { name, claimName, volumeHandle }: { name: string; claimName: string; volumeHandle: string },
): Promise<void> {
  using driver = connectDriver(scene.driver.address);
  const snapshotHandle = await driver.createSnapshot(`${scene.namespace}-${name}`, volumeHandle);
  const { custom } = scene.admin;
  const { uid } = (await createSnapshotObject(scene, { name, claimName })).metadata;
  const contentName = `${scene.namespace}-${name}`;
  const content = (await custom.createClusterCustomObject({
    ...api(volumeSnapshotContentKind),
    body: {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotContent',
      metadata: { name: contentName },
      spec: {
        driver: scene.driver.driverName,
        deletionPolicy: 'Delete',
        source: { volumeHandle },
        sourceVolumeMode: 'Filesystem',
        volumeSnapshotRef: {
          apiVersion: 'snapshot.storage.k8s.io/v1',
          kind: 'VolumeSnapshot',
          namespace: scene.namespace,
          name,
          uid,
        },
      },
    },
  })) as object;
  await custom.replaceClusterCustomObjectStatus({
    ...api(volumeSnapshotContentKind),
    name: contentName,
    body: { ...content, status: { snapshotHandle, readyToUse: true, restoreSize: 2 ** 30 } },
  });
  await custom.replaceNamespacedCustomObjectStatus({
    ...api(volumeSnapshotKind),
    namespace: scene.namespace,
    name,
    body: {
      ...(await readSnapshot(scene, name)),
      status: { boundVolumeSnapshotContentName: contentName, readyToUse: true, restoreSize: '1Gi' },
    },
  });
}

/** Makes a VolumeSnapshot that nobody has looked at yet. */
export async function createSnapshotObject(
  { admin, namespace }: Scene,
  { name, claimName, finalizers = [] }: { name: string; claimName: string; finalizers?: readonly string[] },
): Promise<Snapshot> {
  return (await admin.custom.createNamespacedCustomObject({
    ...api(volumeSnapshotKind),
    namespace,
    body: {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name, finalizers },
      spec: { source: { persistentVolumeClaimName: claimName } },
    },
  })) as Snapshot;
}

export async function readSnapshot({ admin, namespace }: Scene, name: string): Promise<Snapshot> {
  return (await admin.custom.getNamespacedCustomObject({ ...api(volumeSnapshotKind), namespace, name })) as Snapshot;
}

export async function deleteSnapshot({ admin, namespace }: Scene, name: string): Promise<void> {
  await admin.custom.deleteNamespacedCustomObject({ ...api(volumeSnapshotKind), namespace, name });
}

/** Waits until the snapshot is gone. */
export async function snapshotGone(scene: Scene, name: string): Promise<void> {
  await scene.eventually(async () => {
    const snapshot = await ifFound(readSnapshot(scene, name));
    if (snapshot !== undefined) throw new Error(`snapshot ${name} is still there: ${JSON.stringify(snapshot)}`);
  });
}
