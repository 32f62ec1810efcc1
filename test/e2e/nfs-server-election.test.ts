/** nfs-provisioner with leader election while the API server does not respond: clients of its NFS server do not need one. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { NfsScene } from '../support/nfs/nfs-scene.ts';

const programs = await findNfsPrograms();

describe('nfs-provisioner that loses its lease', { skip: programs.missing ?? false }, () => {
  let scene: NfsScene;

  before(async () => {
    scene = await NfsScene.make(programs, undefined, { ownCluster: true });
    await scene.start(['-leader-elect=true']);
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(await scene.rig.log());
  });
  after(() => scene[Symbol.asyncDispose]());

  test('serves its volumes with the same ganesha, and provisions again once it leads again', async () => {
    const storageClass = await scene.createClass();
    const claim = await scene.createClaim(storageClass);
    await scene.bound(claim);
    const ganesha = await scene.ganeshaPid();
    scene.apiServer.standStill();
    try {
      await scene.waitFor(() => assert.match(scene.program.log(), /Stopped leading/));
      await scene.rig.write(join(scene.directory(claim), 'meanwhile'), 'data');
    } finally {
      scene.apiServer.goOn();
    }
    const later = await scene.createClaim(storageClass);
    await scene.bound(later);
    await scene.rig.list(scene.directory(later));
    assert.equal(await scene.rig.read(join(scene.directory(claim), 'meanwhile')), 'data');
    assert.equal(await scene.ganeshaPid(), ganesha);
    await scene.program.stop();
    assert.equal(await scene.program.ending(), 'exit code 0');
    assert.throws(() => process.kill(ganesha, 0), /ESRCH/, 'ganesha ends with the process');
  });
});
