/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { boundClaim } from '../support/admin.ts';
import { referenceGrantKind, volumeSnapshotContentKind, volumeSnapshotKind } from '../support/custom-kinds.ts';
import { openScene, type Scene } from '../support/scene.ts';
import { readSnapshot, snapshotFinalizer, takeSnapshot } from './snapshot-objects.ts';

const feature = 'CrossNamespaceVolumeDataSource';
const snapshotGroup = volumeSnapshotKind.group;

describe('a claim with a source in another namespace', () => {
  let scene: Scene;
  let elsewhere: string;
  before(async () => {
    scene = await openScene({
      cluster: { featureGates: [feature] },
      rbac: ['components/cross-namespace-sources/rbac.yaml', 'components/snapshots/rbac.yaml'],
      kinds: [referenceGrantKind, volumeSnapshotKind, volumeSnapshotContentKind],
      sidecarFlags: [`--feature-gates=${feature}=true`, '--snapshot-orphan-sweep-interval=500ms'],
    });
    elsewhere = `${scene.namespace}-guest`;
    await scene.admin.core.createNamespace({ body: { metadata: { name: elsewhere } } });
    await scene.createClaim({ name: 'source', className: await scene.createClass() });
    const { volume } = await scene.bound('source');
    const volumeHandle = volume.spec?.csi?.volumeHandle ?? '';
    await writeFile(letterIn(volumeHandle), 'Dear neighbour');
    await takeSnapshot(scene, { name: 'source', claimName: 'source', volumeHandle });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const letterIn = (volumeHandle: string): string => join(scene.driver.contentPath(volumeHandle), 'letter.txt');
  const { group, version, plural } = referenceGrantKind;
  /** Allows claims of the other namespace to use sources of the scene's. */
  const grant = (name: string, to: { group: string; kind: string; name?: string }) =>
    scene.admin.custom.createNamespacedCustomObject({
      group,
      version,
      plural,
      namespace: scene.namespace,
      body: {
        apiVersion: `${group}/${version}`,
        kind: referenceGrantKind.kind,
        metadata: { name },
        spec: { from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: elsewhere }], to: [to] },
      },
    });
  const createGuest = async (source: { apiGroup?: string; kind: string }): Promise<V1PersistentVolumeClaim> =>
    await scene.admin.core.createNamespacedPersistentVolumeClaim({
      namespace: elsewhere,
      body: {
        metadata: { generateName: 'guest-' },
        spec: {
          storageClassName: await scene.createClass(),
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          dataSourceRef: { ...source, name: 'source', namespace: scene.namespace },
        },
      },
    });
  /** Waits for the claim's volume and gives the letter in it. */
  const letterOf = async (claim: V1PersistentVolumeClaim): Promise<string> => {
    const name = claim.metadata?.name ?? '';
    const { volume } = await scene.eventually(() => boundClaim(scene.admin, elsewhere, name));
    return await readFile(letterIn(volume.spec?.csi?.volumeHandle ?? ''), 'utf8');
  };
  /** Waits until people are told that there is no grant. */
  const refused = async (claim: V1PersistentVolumeClaim, kind: string): Promise<void> => {
    await scene.eventually(async () => {
      const { items } = await scene.admin.core.listNamespacedEvent({
        namespace: elsewhere,
        fieldSelector: `involvedObject.uid=${claim.metadata?.uid ?? ''},reason=ProvisioningFailed`,
      });
      const guest = `${elsewhere}/${claim.metadata?.name ?? ''}`;
      assert.ok(
        items[0]?.message?.includes(
          `accessing ${scene.namespace}/source of ${kind} dataSource from ${guest} isn't allowed`,
        ),
        items[0]?.message,
      );
    });
  };

  test('clones it once its owner grants that', async () => {
    await grant('another-kind', { group: snapshotGroup, kind: 'VolumeSnapshot', name: 'not-this' });
    const claim = await createGuest({ kind: 'PersistentVolumeClaim' });
    assert.equal(claim.spec?.dataSourceRef?.namespace, scene.namespace); // an API server without the feature drops it
    await refused(claim, 'PersistentVolumeClaim');
    assert.equal((await scene.driver.calls('CreateVolume')).length, 1); // that of the source
    await grant('claims', { group: '', kind: 'PersistentVolumeClaim' });
    assert.equal(await letterOf(claim), 'Dear neighbour');
    const { metadata } = await scene.readClaim('source');
    assert.ok(metadata?.finalizers?.includes('provisioner.storage.kubernetes.io/cloning-protection'));
  });

  test('restores a snapshot once its owner grants that, by name', async () => {
    const claim = await createGuest({ apiGroup: snapshotGroup, kind: 'VolumeSnapshot' });
    await refused(claim, 'VolumeSnapshot');
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true }]);
    await grant('snapshot', { group: snapshotGroup, kind: 'VolumeSnapshot', name: 'source' });
    const finalizers = async () => (await readSnapshot(scene, 'source')).metadata.finalizers ?? [];
    await scene.eventually(async () => assert.deepEqual(await finalizers(), [snapshotFinalizer]));
    await scene.driver.setFaults([]);
    assert.equal(await letterOf(claim), 'Dear neighbour');
    await scene.eventually(async () => assert.deepEqual(await finalizers(), [])); // the sweep's work
  });
});
