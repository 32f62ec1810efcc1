/** Claims whose volume could not be planned, and pauses of an hour: only a change of what the plan reads has them tried again. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PlanWaits } from '../../../src/csi/plan-waits.ts';
import type { InformerHandler } from '../../../src/kube/cache/informer.ts';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { driverName, resource } from '../../support/api-scene.ts';
import { Scene } from './scene.ts';

const flags = ['--retry-interval-start=1h', '--retry-interval-max=1h'];

describe('a claim is planned again when', () => {
  test('the claim that it clones is bound', async () => {
    await using scene = await Scene.start({ flags, controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'] });
    scene.addClaim('copy', { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } });
    assert.match((await scene.event('ProvisioningFailed', 'copy')).message, /"source" not found$/);
    const source = scene.addClaim('source', { volumeName: 'v' });
    const { uid } = source.metadata;
    scene.api.create(resource.volumes, {
      metadata: { name: 'v' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        csi: { driver: driverName, volumeHandle: 'vol-v' },
        claimRef: { namespace: 'ns1', name: 'source', uid },
      },
    });
    const volume = scene.api.get(resource.volumes, { name: 'v' })!;
    scene.api.updateStatus(resource.volumes, { ...structuredClone(volume), status: { phase: 'Bound' } });
    await scene.until('a look at the source that is not bound', () =>
      scene.events('copy').some(({ message }) => message.includes('must have a status of Bound')),
    );
    const unbound = structuredClone(scene.api.get(resource.claims, { namespace: 'ns1', name: 'source' }))!;
    scene.api.updateStatus(resource.claims, { ...unbound, status: { phase: 'Bound' } });
    await scene.volume('copy');
  });

  test('a ReferenceGrant allows its source', async () => {
    const group = 'snapshot.storage.k8s.io';
    const snapshot = {
      apiVersion: `${group}/v1`,
      kind: 'VolumeSnapshot',
      metadata: { name: 'snap', namespace: 'ns2', uid: 'uid-snap' },
      status: { boundVolumeSnapshotContentName: 'content', readyToUse: true },
    };
    const content = {
      apiVersion: `${group}/v1`,
      kind: 'VolumeSnapshotContent',
      metadata: { name: 'content' },
      spec: { driver: driverName, volumeSnapshotRef: { namespace: 'ns2', name: 'snap', uid: 'uid-snap' } },
      status: { snapshotHandle: 'sid', readyToUse: true },
    };
    await using scene = await Scene.start({
      flags: [...flags, '--feature-gates=CrossNamespaceVolumeDataSource=true'],
      controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'],
      objects: [snapshot, content],
    });
    scene.addClaim('copy', {
      dataSourceRef: { apiGroup: group, kind: 'VolumeSnapshot', name: 'snap', namespace: 'ns2' },
    });
    const { message } = await scene.event('ProvisioningFailed', 'copy');
    assert.match(message, /accessing ns2\/snap .* isn't allowed$/);
    scene.api.create(
      { group: 'gateway.networking.k8s.io', version: 'v1beta1', plural: 'referencegrants' },
      {
        metadata: { name: 'g', namespace: 'ns2' },
        spec: {
          from: [{ group: '', kind: 'PersistentVolumeClaim', namespace: 'ns1' }],
          to: [{ group, kind: 'VolumeSnapshot' }],
        },
      },
    );
    await scene.volume('copy');
  });

  test('a node with the driver comes', async () => {
    await using scene = await Scene.start({
      flags,
      plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    });
    scene.addClaim();
    assert.match((await scene.event('ProvisioningFailed')).message, /no available topology found$/);
    scene.api.create(resource.nodes, { metadata: { name: 'n1', labels: { zone: 'a' } } });
    scene.api.create(resource.csiNodes, {
      metadata: { name: 'n1' },
      spec: { drivers: [{ name: driverName, nodeID: 'n1', topologyKeys: ['zone'] }] },
    });
    await scene.volume();
  });
});

describe('PlanWaits', () => {
  function scene() {
    const clock = new ManualClock({ turns: 1 });
    const waits = new PlanWaits({ clock });
    const woken: string[] = [];
    waits.onClaimChanged((uid) => woken.push(uid));
    let handler: InformerHandler<KubeObject> = {};
    const objects = {
      addHandler: (added: InformerHandler<KubeObject>) => {
        handler = added;
        return { synced: Promise.resolve(), hasSynced: true, remove: () => undefined };
      },
    };
    waits.follow(objects, 'grants');
    const changed = (): void => handler.onAdd?.({ metadata: { name: 'g' } }, false);
    const refused = (uid: string): Promise<void> =>
      assert.rejects(waits.during(uid, 'grants', () => Promise.reject(new Error('no grant'))));
    return { clock, waits, woken, changed, refused };
  }

  test('wakes each claim that was refused once, however many grants change together', async () => {
    const { clock, waits, woken, changed, refused } = scene();
    await refused('u1');
    await refused('u2');
    waits.onClaimChanged((uid) => void refused(uid));
    for (let each = 0; each < 3; each++) changed();
    assert.deepEqual(woken, []);
    await clock.advance(1000);
    assert.deepEqual(woken, ['u1', 'u2']);
    waits.forget('u1');
    changed();
    await clock.advance(1000);
    assert.deepEqual(woken, ['u1', 'u2', 'u2']);
  });

  test('wakes no claim that was allowed, is planned anew or is gone', async () => {
    const { clock, waits, woken, changed, refused } = scene();
    await waits.during('u1', 'grants', () => undefined);
    await refused('u2');
    waits.forget('u2');
    changed();
    await clock.advance(1000);
    assert.deepEqual(woken, []);
  });

  test('wakes a claim for a change that comes while the step reads', async () => {
    const { clock, waits, woken, changed } = scene();
    const step = Promise.withResolvers<undefined>();
    const done = waits.during('u1', 'grants', () => step.promise);
    changed();
    step.reject(new Error('what was read is older'));
    await assert.rejects(done, /what was read is older/);
    await clock.advance(1000);
    assert.deepEqual(woken, ['u1']);
  });
});
