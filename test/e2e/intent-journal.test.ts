import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { openScene, type Scene } from '../support/scene.ts';

const driverName = 'journaled.example.com';
const prefix = 'csi-provisioner.journal/';

describe('a volume in progress', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({ driverName, sidecarFlags: ['--timeout=2s'] });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** Entries of all open records, as an operator reads them. */
  async function records(): Promise<string[]> {
    const { items } = await scene.admin.coordination.listNamespacedLease({ namespace: scene.cluster.sidecarNamespace });
    const ours = items.filter(({ metadata }) => /^journaled-example-com-journal-\d+$/.test(metadata?.name ?? ''));
    return ours.flatMap(({ metadata }) =>
      Object.entries(metadata?.annotations ?? {})
        .filter(([key]) => key.startsWith(prefix) && !/\/(shard|shared-.*)$/.test(key))
        .map(([, text]) => text),
    );
  }

  async function gone(): Promise<void> {
    await scene.eventually(async () => assert.deepEqual(await scene.driver.volumeIds(), []));
    const { items } = await scene.admin.core.listPersistentVolume();
    const driverNames = items.map(({ spec }) => spec?.csi?.driver);
    assert.equal(driverNames.includes(driverName), false, 'no volume was saved');
    await scene.eventually(async () => assert.deepEqual(await records(), []));
  }

  /** Waits until the sidecar has given up on a call for the claim. */
  async function timedOut(claim: V1PersistentVolumeClaim): Promise<void> {
    assert.match((await scene.event(claim, 'ProvisioningFailed')).message ?? '', /DeadlineExceeded/);
  }

  test('is deleted when the driver answers late and the claim is deleted meanwhile', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, after: true }]);
    const claim = await scene.createClaim({ className: await scene.createClass() });
    await scene.eventually(async () => assert.equal((await scene.driver.volumeIds()).length, 1));
    const [record, ...others] = await records();
    assert.deepEqual(others, []);
    assert.match(record ?? '', new RegExp(`"uid":"${claim.metadata?.uid}"`));
    await scene.deleteClaim(claim.metadata?.name ?? '');
    await timedOut(claim);
    await scene.driver.setFaults([]);
    await gone();
  });

  test('is finished or deleted by the successor of a sidecar that was killed, as the claim is there or gone', async () => {
    await scene.driver.setFaults([{ method: 'CreateVolume', hold: true, after: true }]);
    const className = await scene.createClass();
    const [kept, deleted] = [await scene.createClaim({ className }), await scene.createClaim({ className })];
    await scene.eventually(async () => assert.equal((await scene.driver.volumeIds()).length, 2));
    await scene.sidecar.stop('SIGKILL');
    await scene.driver.setFaults([]);
    await scene.deleteClaim(deleted.metadata?.name ?? '');
    await scene.startSidecar();
    const { volume } = await scene.bound(kept.metadata?.name ?? '');
    await scene.eventually(async () => {
      assert.deepEqual(await scene.driver.volumeIds(), [volume.spec?.csi?.volumeHandle]);
    });
    await scene.deleteClaim(kept.metadata?.name ?? '');
    await scene.volumeGone(volume.metadata?.name ?? '');
    await gone();
  });
});
