import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { patienceMs } from '../support/patience.ts';
import { openScene, type Scene } from '../support/scene.ts';

const skip = process.env['E2E_TARGET'] === 'kubernetes' ? false : 'the sandbox has no etcd';

describe('an etcd that is restored from a backup below a running sidecar', { skip }, () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene({
      restartsApiServer: true,
      cluster: { ownCluster: true },
      rbac: ['components/leader-election/rbac.yaml'],
      sidecarFlags: [
        '--leader-election',
        '--leader-election-renew-deadline=120s',
        '--leader-election-lease-duration=150s',
        '--retry-interval-max=5s', // the claim that fails meanwhile must not wait as long again as the writing took
      ],
    });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  const volumeOf = (uid: string | undefined): string => `pvc-${uid ?? ''}`;

  test('deletes no volume in use, makes none twice, and serves the claims that come', async () => {
    const { admin, driver, namespace } = scene;
    const apiServer = scene.cluster.apiServer;
    assert.ok(apiServer?.backUp !== undefined && apiServer.restore !== undefined);
    const className = await scene.createClass();
    const create = (name: string) => scene.createClaim({ className, name });
    /** The restored server must not have passed the version of the caches before they notice. */
    const writeALot = async (): Promise<void> => {
      for (let batch = 0; batch < 40; batch++) {
        const names = Array.from({ length: 50 }, (_, index) => `filler-${batch}-${index}`);
        await Promise.all(
          names.map((name) =>
            admin.objects.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace } }),
          ),
        );
      }
    };
    await create('kept');
    await create('deleted-since');
    const kept = await scene.bound('kept');
    const deleted = await scene.bound('deleted-since');
    await driver.setFaults([{ method: 'CreateVolume', code: 'UNAVAILABLE' }]);
    const pending = await create('bound-since');
    await scene.event(pending, 'ProvisioningFailed');
    await apiServer.backUp();
    await writeALot();

    await driver.setFaults([{ method: 'DeleteVolume', code: 'INTERNAL' }]);
    const bound = await scene.bound('bound-since');
    await create('created-since');
    const gone = await scene.bound('created-since');
    await scene.deleteClaim('deleted-since');
    await scene.eventually(async () => {
      const events = await scene.volumeEvents(deleted.volume);
      assert.ok(events.some(({ reason }) => reason === 'VolumeFailedDelete'));
    });
    await apiServer.restore();
    await driver.setFaults([]);

    await create('after');
    // a pause before the caches are connected again, then the silence after which they compare versions
    const next = await scene.bound('after', { withinMs: 2 * patienceMs });
    const again = await scene.bound('bound-since');
    assert.equal(again.volume.spec?.csi?.volumeHandle, bound.volume.spec?.csi?.volumeHandle);
    const back = await scene.bound('deleted-since');
    assert.equal(back.volume.metadata?.uid, deleted.volume.metadata?.uid);

    await scene.deleteClaim('kept');
    await scene.volumeGone(kept.volume.metadata?.name ?? '');
    const handles = [back, again, gone, next].map(({ volume }) => volume.spec?.csi?.volumeHandle);
    assert.deepEqual((await driver.volumeIds()).toSorted(), handles.toSorted());
    const deletions = await driver.calls('DeleteVolume');
    assert.deepEqual(
      deletions.filter(({ code }) => code === 'OK').map(({ request }) => request.volume_id),
      [kept.volume.spec?.csi?.volumeHandle],
    );

    await scene.deleteClaim('deleted-since'); // its deletion, which failed before, is no reason to leave it
    await scene.volumeGone(back.volume.metadata?.name ?? '');
    const { items } = await admin.core.listNamespacedPersistentVolumeClaim({ namespace });
    assert.deepEqual(
      items.map(({ spec, metadata }) => spec?.volumeName === volumeOf(metadata?.uid)),
      [true, true],
    );
    assert.ok(scene.sidecar.running());
  });
});
