/** nfs-provisioner while its ganesha, or the disk behind it, does not answer or cannot be written; with short intervals. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { FreezableFolder } from '../support/frozen-folder.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { freePort } from '../support/free-ports.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';

const programs = await findNfsPrograms();

describe('nfs-provisioner that waits for', { skip: programs.missing ?? false }, () => {
  let folder: FreezableFolder | undefined;
  let scene: NfsScene;
  let storageClass: string;
  let served: NamedClaim;
  let address: string;
  let flags: string[];
  const get = async (path: string): Promise<string> => (await fetch(`http://${address}${path}`)).text();
  const metric = async (name: string): Promise<number> =>
    Number(new RegExp(`^nfs_provisioner_${name} (\\d+)$`, 'm').exec(await get('/metrics'))?.[1]);

  before(async () => {
    folder = FreezableFolder.mount();
    scene = await NfsScene.make(programs, folder?.path);
    address = `127.0.0.1:${await freePort()}`;
    flags = [`-http-endpoint=${address}`, '-probe-interval=1', '-probe-timeout=4'];
    await scene.start(flags);
    storageClass = await scene.createClass();
    served = await scene.createClaim(storageClass);
    await scene.bound(served);
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(await scene.rig.log());
  });
  after(async () => {
    folder?.thaw();
    await scene[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });

  const allWell = (): Promise<void> =>
    scene.waitFor(async () => {
      assert.deepEqual([await get('/healthz'), await get('/readyz'), await metric('server_up')], ['ok', 'ok', 1]);
      await scene.rig.list(scene.directory(served));
    });

  test('a ganesha that was stopped says so, and starts it again', async () => {
    await allWell();
    const old = await scene.ganeshaPid();
    process.kill(old, 'SIGSTOP');
    await scene.waitFor(async () => assert.match(await get('/readyz'), /ganesha has not responded for \d+ s/));
    assert.equal(await metric('server_up'), 0);
    assert.match(await get('/healthz'), /ganesha has (not responded|ended)/);
    await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
    await allWell();
    assert.ok((await metric('server_restarts')) >= 1); // a slow one may be started once more
    assert.throws(() => process.kill(old, 0), /ESRCH/);
  });

  test('a disk that hangs says so, does not start ganesha again, and goes on once it answers', async (context) => {
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    await allWell();
    const [ganesha, restarts] = [await scene.ganeshaPid(), await metric('server_restarts')];
    folder.freeze();
    const hung = /the export directory .* does not respond to a write within 4 s/;
    await scene.waitFor(async () => assert.match(await get('/readyz'), hung));
    assert.equal(await metric('export_directory_up'), 0);
    assert.equal(await get('/healthz'), 'ok');
    const claim = await scene.createClaim(storageClass);
    await scene.event(claim, hung);
    assert.equal(await metric('server_restarts'), restarts);
    process.kill(ganesha, 0);
    folder.thaw();
    await scene.bound(claim);
    await allWell();
    assert.deepEqual([await scene.ganeshaPid(), await metric('export_directory_up')], [ganesha, 1]);
  });

  test('a read-only file system is reported, keeps what it has, and is used again once it is writable', async (context) => {
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    await allWell();
    const [ganesha, restarts] = [await scene.ganeshaPid(), await metric('server_restarts')];
    const doomed = await scene.createClaim(storageClass);
    const volume = await scene.bound(doomed);
    await writeFile(join(scene.directory(doomed), 'file'), 'data'); // ganesha keeps files open that clients write
    await folder.remount('ro');
    const readOnly = /the export directory .* is on a read-only file system/;
    await scene.waitFor(async () => assert.match(await get('/readyz'), readOnly));
    assert.equal(await metric('export_directory_up'), 0);
    assert.equal(await get('/healthz'), 'ok');
    const claim = await scene.createClaim(storageClass);
    await scene.event(claim, readOnly);
    await scene.deleteClaim(doomed);
    await scene.event({ uid: volume.metadata?.uid ?? '' }, readOnly, 'default');
    assert.equal(await scene.rig.read(join(scene.directory(doomed), 'file')), 'data', 'clients go on');
    await folder.remount('rw');
    await scene.bound(claim);
    await scene.gone(volume);
    assert.equal(await isThere(scene.directory(doomed)), false);
    await allWell();
    assert.deepEqual([await scene.ganeshaPid(), await metric('server_restarts')], [ganesha, restarts]);
    assert.equal(await metric('export_directory_up'), 1);
  });

  test('a read-only file system starts, serves what it has, and frees what was deleted once it is writable', async (context) => {
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    await allWell();
    const doomed = await scene.createClaim(storageClass);
    const volume = await scene.bound(doomed);
    await writeFile(join(scene.directory(doomed), 'file'), 'data');
    await scene.program.stop();
    await folder.remount('ro');
    await scene.start([...flags, '-grace-period=18']); // which the configuration cannot say
    await scene.waitFor(async () => assert.equal(await metric('server_up'), 1));
    const readOnly = /the export directory .* is on a read-only file system/;
    await scene.waitFor(async () => assert.match(await get('/readyz'), readOnly));
    assert.equal(await get('/healthz'), 'ok');
    const data = join(scene.directory(doomed), 'file');
    await scene.waitFor(async () => assert.equal(await scene.rig.read(data), 'data'));
    await scene.deleteClaim(doomed);
    await scene.event({ uid: volume.metadata?.uid ?? '' }, readOnly, 'default');
    assert.equal(await scene.rig.read(data), 'data', 'nothing is unexported that cannot be removed');
    const claim = await scene.createClaim(storageClass);
    await scene.event(claim, readOnly);
    await folder.remount('rw');
    await scene.gone(volume);
    await scene.bound(claim);
    assert.equal(await isThere(scene.directory(doomed)), false);
    assert.match(await scene.config(), /Grace_Period = 18;/);
    await allWell();
  });

  test('a full disk serves what it has, starts, and is freed by a deletion', async (context) => {
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    await allWell();
    const claims = await Promise.all([scene.createClaim(storageClass), scene.createClaim(storageClass)]);
    const [empty, large] = await Promise.all(claims.map((claim) => scene.bound(claim)));
    const [ofEmpty = '', ofLarge = ''] = claims.map((claim) => scene.directory(claim));
    await folder.fill(ofLarge);
    await scene.program.stop(); // and a start with another configuration of the server, which cannot be written
    await scene.start([...flags, '-grace-period=17']);
    await allWell();
    await scene.rig.list(ofLarge);
    await folder.fill(ofLarge); // what the end of the process has freed
    await scene.deleteClaim(claims[0]);
    await scene.gone(empty!);
    assert.equal(await isThere(ofEmpty), false);
    await assert.rejects(scene.rig.list(ofEmpty));
    await folder.fill(ofLarge);
    const ganesha = await scene.ganeshaPid();
    process.kill(ganesha, 'SIGKILL');
    await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), ganesha));
    await allWell();
    await scene.rig.list(ofLarge);
    await scene.deleteClaim(claims[1]);
    await scene.gone(large!);
    assert.equal(await isThere(ofLarge), false);
    const config = await scene.config();
    assert.deepEqual(
      [ofEmpty, ofLarge].filter((directory) => config.includes(directory)),
      [],
    );
    assert.match(config, /Grace_Period = 17;/, 'it is written as soon as there is room');
    const later = await scene.createClaim(storageClass);
    await scene.bound(later);
    await scene.rig.list(scene.directory(later));
  });

  test('a bus that was stopped starts both again', async () => {
    await allWell();
    const old = await scene.ganeshaPid();
    const [, bus = ''] = /program=dbus-daemon pid=(\d+)(?!.*program=dbus-daemon pid)/s.exec(scene.program.log()) ?? [];
    process.kill(Number(bus), 'SIGSTOP');
    await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
    await allWell();
    assert.throws(() => process.kill(Number(bus), 0), /ESRCH/);
  });
});
