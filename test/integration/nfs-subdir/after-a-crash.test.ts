/** What a process that was killed has made, and the next one: with records that it left open or closed, and time standing still. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { maxCallMs } from '../../../provisioners/nfs-subdir/make-provisioner.ts';
import { leftRecord, type RecoveryScene, recoveryScene } from '../provision/recovery-scene.ts';
import { resource } from '../provision/rig.ts';
import { SubdirRig } from './rig.ts';

const { signal } = new AbortController();

interface Crash {
  scene: RecoveryScene;
  /** Of the directory, in the export. */
  directory: string;
}

/** The directory of claim `ns/a` is there, with a file in it; the next process is not started yet. */
async function crashed(subdir: SubdirRig, { isRecorded }: { isRecorded: boolean }): Promise<Crash> {
  const { provisioner } = subdir;
  const scene = await recoveryScene({ rig: { controller: { provisioner, maxCallMs } } });
  const { uid, since, journal, name } = scene;
  const storageClass = subdir.storageClass({ onDelete: 'delete' }, { metadata: { name: 'c1' } });
  const claim = subdir.claim({ namespace: 'ns', name: 'a' });
  const options = subdir.options(storageClass, { ...claim, metadata: { ...claim.metadata, uid } }, name);
  const plan = await provisioner.plan(options, { signal });
  await provisioner.fulfil(plan, { signal });
  const directory = `ns-a-${name}`;
  subdir.write(`${directory}/file`);
  if (isRecorded) journal.leave({ record: leftRecord(uid, { plan, since }), owner: 'own' });
  return { scene, directory };
}

describe('after a crash', () => {
  test('what was made for a claim that is gone is removed 15 s after the start', async () => {
    await using subdir = await SubdirRig.start();
    const { scene, directory } = await crashed(subdir, { isRecorded: true });
    await using rig = scene.rig;
    rig.deleteClaim('a');
    await rig.start();
    await scene.clock.advance(15_000 - 1);
    await rig.settle();
    assert.ok(subdir.exists(directory));
    await scene.undone();
    assert.deepEqual(subdir.entries(), []);
  });

  for (const isRecorded of [true, false]) {
    test(`what an administrator has set to Retain and freed meanwhile stays, its record ${isRecorded ? 'open' : 'closed'}`, async () => {
      await using subdir = await SubdirRig.start();
      const { scene, directory } = await crashed(subdir, { isRecorded });
      await using rig = scene.rig;
      const { uid, name, journal } = scene;
      const claimRef = { namespace: 'ns', name: 'a', uid };
      const nfs = { server: 'srv', path: subdir.remote(directory) };
      rig.addVolume(name, 'Bound', { spec: { claimRef, nfs, persistentVolumeReclaimPolicy: 'Retain' } });
      rig.deleteClaim('a');
      rig.releaseVolume(name);
      rig.api.delete(resource.volumes, { name });
      await rig.start();
      await scene.undone();
      await scene.pass(120_000);
      assert.equal(subdir.read(`${directory}/file`), 'data');
      assert.equal(journal.records.size, 0);
    });
  }
});
