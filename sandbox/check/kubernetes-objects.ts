import type { SandboxClient } from '../api/client.ts';
import { resources } from '../control-plane/objects.ts';
import type { BenchOptions } from './bench-options.ts';

const storage = 'storage.k8s.io/v1';
const secretName = 'check-secret';
/** The calls of the sidecar that take secrets. */
const secretKeys = ['provisioner-secret'];

/** Makes the classes `check` and `check-late`, and the Secret and the VolumeAttributesClass that they need. */
export function makeClasses(client: SandboxClient, options: BenchOptions, provisioner: string): void {
  const { classParameters, mutableParameters, secrets } = options;
  const secretParameters = Object.keys(secrets).length === 0 ? {} : makeSecret(client, secrets);
  const common = { apiVersion: storage, kind: 'StorageClass', provisioner, allowVolumeExpansion: true };
  for (const [name, mode] of [
    ['check', 'Immediate'],
    ['check-late', 'WaitForFirstConsumer'],
  ] as const) {
    client.create(resources.classes, {
      ...common,
      metadata: { name },
      parameters: { ...classParameters, ...secretParameters },
      volumeBindingMode: mode,
    });
  }
  if (Object.keys(mutableParameters).length === 0) return;
  client.create(
    { group: 'storage.k8s.io', version: 'v1', plural: 'volumeattributesclasses' },
    {
      apiVersion: storage,
      kind: 'VolumeAttributesClass',
      metadata: { name: 'check' },
      driverName: provisioner,
      parameters: mutableParameters,
    },
  );
}

function makeSecret(client: SandboxClient, stringData: Record<string, string>): Record<string, string> {
  const data = Object.fromEntries(
    Object.entries(stringData).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  );
  const metadata = { name: secretName, namespace: 'default' };
  client.create({ group: '', version: 'v1', plural: 'secrets' }, { apiVersion: 'v1', kind: 'Secret', metadata, data });
  return Object.fromEntries(
    secretKeys.flatMap((key) => [
      [`csi.storage.k8s.io/${key}-name`, secretName],
      [`csi.storage.k8s.io/${key}-namespace`, 'default'],
    ]),
  );
}

/** Makes a snapshot's objects, bound and ready, as the snapshot controller and the snapshotter would. @returns its name. */
export function makeSnapshotObjects(
  client: SandboxClient,
  { driver, claim, volumeHandle, snapshotHandle, sizeBytes }: SnapshotFacts,
): string {
  const ref = (plural: string) => ({ group: 'snapshot.storage.k8s.io', version: 'v1', plural });
  const apiVersion = 'snapshot.storage.k8s.io/v1';
  const name = `${claim}-snapshot`;
  const snapshot = client.create(ref('volumesnapshots'), {
    apiVersion,
    kind: 'VolumeSnapshot',
    metadata: { name, namespace: 'default' },
    spec: { source: { persistentVolumeClaimName: claim } },
  });
  const { uid = '' } = snapshot.metadata;
  const content = client.create(ref('volumesnapshotcontents'), {
    apiVersion,
    kind: 'VolumeSnapshotContent',
    metadata: { name },
    spec: {
      driver,
      deletionPolicy: 'Retain',
      source: { volumeHandle },
      sourceVolumeMode: 'Filesystem',
      volumeSnapshotRef: { apiVersion, kind: 'VolumeSnapshot', namespace: 'default', name, uid },
    },
  });
  client.updateStatus(ref('volumesnapshotcontents'), { ...content, status: { snapshotHandle, readyToUse: true } });
  client.updateStatus(ref('volumesnapshots'), {
    ...snapshot,
    status: { boundVolumeSnapshotContentName: name, readyToUse: true, restoreSize: String(sizeBytes) },
  });
  return name;
}

export interface SnapshotFacts {
  readonly driver: string;
  readonly claim: string;
  readonly volumeHandle: string;
  readonly snapshotHandle: string;
  readonly sizeBytes: bigint;
}
