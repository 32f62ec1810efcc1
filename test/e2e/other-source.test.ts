/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** A volume that was moved to another driver by hand, or restored by a backup tool, and kept the annotation of the former one. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { openScene, type Scene } from '../support/scene.ts';
import { readerKubeconfig, why } from '../support/why-command.ts';

const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
const provisionedBy = 'pv.kubernetes.io/provisioned-by';

describe('a PersistentVolume that names this provisioner, of another driver', () => {
  let scene: Scene;
  before(async () => {
    scene = await openScene();
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());

  /** Binds a claim to a volume with such a source, and deletes the claim. @returns the volume once it is released. */
  async function released(
    name: string,
    source: Partial<V1PersistentVolume['spec']>,
    finalizers: string[] = [],
  ): Promise<V1PersistentVolume> {
    const { core } = scene.admin;
    const className = 'none';
    await core.createPersistentVolume({
      body: {
        metadata: { name, annotations: { [provisionedBy]: scene.driver.driverName }, finalizers },
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          persistentVolumeReclaimPolicy: 'Delete',
          storageClassName: className,
          claimRef: { namespace: scene.namespace, name },
          ...source,
        },
      },
    });
    await scene.createClaim({ name, className, spec: { volumeName: name } });
    await scene.bound(name);
    await scene.deleteClaim(name);
    return await scene.eventually(async () => {
      const volume = await core.readPersistentVolume({ name });
      assert.equal(volume.status?.phase, 'Released');
      return volume;
    });
  }

  for (const { title, finalizers } of [
    { title: 'is left as it is, and so is its storage, which a bound volume of ours has', finalizers: [] },
    { title: 'is left as it is with the finalizer of its former provisioner', finalizers: [finalizer] },
  ]) {
    test(title, async () => {
      const { core } = scene.admin;
      const { metadata } = await scene.createClaim({ className: await scene.createClass() });
      const { volume: own } = await scene.bound(metadata?.name ?? '');
      const volumeHandle = own.spec?.csi?.volumeHandle ?? '';
      const name = `${scene.namespace}-moved-${finalizers.length}`;
      const moved = await released(name, { csi: { driver: 'new.example.com', volumeHandle } }, finalizers);
      const waiting = await scene.eventually(async () => {
        const found = (await scene.volumeEvents(moved)).find(({ reason }) => reason === 'VolumeDeletionWaiting');
        assert.ok(found);
        return found;
      });
      const what = `its annotation ${provisionedBy} names ${scene.driver.driverName}, but its storage is of CSI driver new.example.com`;
      const keep = 'set the reclaim policy to Retain';
      const cure = `Correct the annotation, or ${keep}`;
      assert.equal(waiting.type, 'Warning');
      assert.equal(waiting.message, `persistentvolume ${name} is left as it is: ${what}. ${cure}`);

      const kubeconfig = await readerKubeconfig(scene.cluster, name);
      const explanation = await why(kubeconfig, `pv/${name}`);
      const annotate = `kubectl annotate pv ${name} ${provisionedBy}=new.example.com --overwrite`;
      assert.deepEqual(
        [explanation.cause, explanation.message, explanation.cure],
        [
          'other-source',
          `The volume is left as it is: ${what}.`,
          `If the storage is to be kept, ${keep}. If its driver is to delete it, correct the annotation: ${annotate}`,
        ],
      );

      // a claim of ours that is made and deleted meanwhile: whatever was to be done for the moved volume would have been done
      const later = await scene.createClaim({ className: await scene.createClass() });
      const { volume } = await scene.bound(later.metadata?.name ?? '');
      await scene.deleteClaim(later.metadata?.name ?? '');
      await scene.volumeGone(volume.metadata?.name ?? '');
      const deleted = (await scene.driver.calls('DeleteVolume')).map(({ request }) => request.volume_id);
      assert.ok(!deleted.includes(volumeHandle));
      assert.ok((await scene.driver.volumeIds()).includes(volumeHandle));
      const kept = await core.readPersistentVolume({ name });
      assert.deepEqual(
        (kept.metadata?.finalizers ?? []).filter((each) => each === finalizer),
        finalizers,
      );
      assert.equal((await scene.volumeEvents(moved)).filter(({ reason }) => reason === waiting.reason).length, 1);

      await core.patchPersistentVolume({ name, body: [{ op: 'replace', path: '/metadata/finalizers', value: [] }] });
      await core.deletePersistentVolume({ name });
      await scene.volumeGone(name);
    });
  }

  test('is left as it is where it is on an NFS server', async () => {
    const name = `${scene.namespace}-nfs`;
    const volume = await released(name, { nfs: { server: '127.0.0.1', path: '/p' } });
    await scene.eventually(async () => {
      const texts = (await scene.volumeEvents(volume)).map(({ message }) => message ?? '');
      assert.ok(
        texts.some((text) => text.includes('but its source is nfs. Correct the annotation')),
        texts.join('\n'),
      );
    });
    const events = await scene.volumeEvents(volume);
    assert.deepEqual(
      events.filter(({ reason }) => reason === 'VolumeFailedDelete'),
      [],
    );
    await scene.admin.core.deletePersistentVolume({ name });
    await scene.volumeGone(name);
  });
});
