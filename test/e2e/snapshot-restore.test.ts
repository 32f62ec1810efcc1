import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { installKinds, volumeSnapshotContentKind, volumeSnapshotKind } from '../support/custom-kinds.ts';
import { eventually } from '../support/eventually.ts';
import { patienceMs } from '../support/patience.ts';
import { openScene, type Scene } from '../support/scene.ts';
import {
  createSnapshotObject,
  deleteSnapshot,
  readSnapshot,
  snapshotFinalizer,
  snapshotGone,
  takeSnapshot,
} from './snapshot-objects.ts';

describe('a claim that restores a snapshot', () => {
  let scene: Scene;
  let removeKinds: (() => Promise<void>) | undefined;
  before(async () => {
    scene = await openScene({
      sidecarFlags: ['--snapshot-orphan-sweep-interval=500ms'],
      rbac: ['components/snapshots/rbac.yaml'],
    });
  });
  afterEach((context) => scene.report(context));
  after(async () => {
    await removeKinds?.();
    await scene.close();
  });

  const fileIn = (volume: V1PersistentVolume): string =>
    join(scene.driver.contentPath(volume.spec?.csi?.volumeHandle ?? ''), 'letter.txt');
  const restoreOf = (name: string) => ({
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
  });
  const finalizersOf = async (name: string): Promise<string[]> =>
    (await readSnapshot(scene, name)).metadata.finalizers ?? [];
  /** A claim whose volume holds the text, and a snapshot of it. */
  const original = async (name: string, text: string): Promise<V1PersistentVolume> => {
    await scene.createClaim({ name, className: await scene.createClass() });
    const { volume } = await scene.bound(name);
    await writeFile(fileIn(volume), text);
    await takeSnapshot(scene, { name, claimName: name, volumeHandle: volume.spec?.csi?.volumeHandle ?? '' });
    return volume;
  };

  test('needs no restart of the sidecar when snapshots are installed after its start', async (t) => {
    if (scene.cluster.name === 'sandbox') {
      t.skip('the sandbox has snapshots from the start');
      return;
    }
    await scene.bound((await scene.createClaim({ className: await scene.createClass() })).metadata?.name ?? '');
    const startMs = performance.now();
    removeKinds = await installKinds(scene.cluster, scene.admin, [volumeSnapshotKind, volumeSnapshotContentKind]);
    await createSnapshotObject(scene, { name: 'old', claimName: 'long-gone', finalizers: [snapshotFinalizer] });
    // The sidecar checks about once a minute, and a check that fails costs another minute.
    await eventually(async () => assert.deepEqual(await finalizersOf('old'), []), { withinMs: 2 * patienceMs });
    t.diagnostic(`left-over protection was removed ${Math.round(performance.now() - startMs)} ms after the install`);
    assert.match(scene.sidecar.log(), /An optional API was installed/);
    await deleteSnapshot(scene, 'old');
  });

  test('gets its content; the snapshot is protected meanwhile and not longer', async () => {
    const volume = await original('source', 'Dear reader');
    await writeFile(fileIn(volume), 'overwritten');
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true }]);
    await scene.createClaim({ name: 'restored', className: await scene.createClass(), spec: restoreOf('source') });
    await scene.eventually(async () => assert.deepEqual(await finalizersOf('source'), [snapshotFinalizer]));
    await scene.driver.setFaults([]);
    const { volume: restored } = await scene.bound('restored');
    assert.equal(await readFile(fileIn(restored), 'utf8'), 'Dear reader');
    assert.deepEqual(await finalizersOf('source'), []);
    const [call] = (await scene.driver.calls('CreateVolume')).slice(-1);
    assert.ok(call?.request.volume_content_source?.snapshot?.snapshot_id);
    assert.equal(call.code, 'OK');
  });

  test('keeps a deleted snapshot until it is done with it', async () => {
    await original('leaving', 'Farewell');
    await scene.driver.setFaults([
      { method: 'CreateVolume', code: 'UNAVAILABLE', times: 1 },
      { method: 'CreateVolume', hold: true },
    ]);
    const claim = await scene.createClaim({ className: await scene.createClass(), spec: restoreOf('leaving') });
    await scene.event(claim, 'ProvisioningFailed');
    await deleteSnapshot(scene, 'leaving');
    const { metadata } = await readSnapshot(scene, 'leaving');
    assert.ok(metadata.deletionTimestamp);
    assert.deepEqual(metadata.finalizers, [snapshotFinalizer]);
    await scene.driver.setFaults([]);
    const { volume } = await scene.bound(claim.metadata?.name ?? '');
    assert.equal(await readFile(fileIn(volume), 'utf8'), 'Farewell');
    await snapshotGone(scene, 'leaving');
  });

  test('that gives up leaves protection behind, which the sweep removes', async () => {
    await original('abandoned', 'never read');
    await scene.driver.setFaults([{ method: 'CreateVolume', code: 'INTERNAL', message: 'no tape' }]);
    const claim = await scene.createClaim({ className: await scene.createClass(), spec: restoreOf('abandoned') });
    await scene.event(claim, 'ProvisioningFailed');
    assert.deepEqual(await finalizersOf('abandoned'), [snapshotFinalizer]);
    await scene.deleteClaim(claim.metadata?.name ?? '');
    await scene.eventually(async () => assert.deepEqual(await finalizersOf('abandoned'), []));
    await scene.driver.setFaults([]);
  });

  test('waits for one that is not there or not ready, and says which', async () => {
    await createSnapshotObject(scene, { name: 'raw', claimName: 'source' });
    const className = await scene.createClass();
    const missing = await scene.createClaim({ className, spec: restoreOf('nowhere') });
    const early = await scene.createClaim({ className, spec: restoreOf('raw') });
    const texts = [
      await scene.event(missing, 'ProvisioningFailed'),
      await scene.event(early, 'ProvisioningFailed'),
    ].map(({ message }) => message ?? '');
    const intro = 'error getting handle for DataSource Type VolumeSnapshot by Name';
    const notFound = 'volumesnapshots.snapshot.storage.k8s.io "nowhere" not found';
    assert.ok(
      texts[0]?.includes(`${intro} nowhere: error getting snapshot nowhere from api server: ${notFound}`),
      texts[0],
    );
    assert.ok(texts[1]?.includes(`${intro} raw: snapshot raw not bound`), texts[1]);
    for (const claim of [missing, early]) await scene.deleteClaim(claim.metadata?.name ?? '');
  });
});
