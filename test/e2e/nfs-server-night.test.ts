/** One night of nfs-provisioner: mishaps one after the other, while clients read and write, and count what fails. */
import assert from 'node:assert/strict';
import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, test } from 'node:test';
import { FreezableFolder } from '../support/frozen-folder.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';

const programs = await findNfsPrograms();

interface Failure {
  mishap: string;
  client: 'reader' | 'writer';
  message: string;
}

describe('a night of nfs-provisioner', { skip: programs.missing ?? false }, () => {
  let folder: FreezableFolder | undefined;
  let scene: NfsScene;
  let storageClass: string;
  let served: NamedClaim;

  before(async () => {
    folder = FreezableFolder.mount();
    scene = await NfsScene.make(programs, folder?.path, { ownCluster: true });
    await scene.start(['-probe-interval=1', '-probe-timeout=4', '-leader-elect=true']);
    storageClass = await scene.createClass();
    served = await scene.createClaim(storageClass);
    await scene.bound(served);
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(await scene.rig.log());
  });
  after(async () => {
    await scene[Symbol.asyncDispose]();
    folder?.[Symbol.dispose]();
  });

  test('loses nothing that was written, and clients go on after each mishap', async (context) => {
    if (folder === undefined) {
      context.skip('no file system can be mounted here');
      return;
    }
    let mishap = 'none';
    let reads = 0;
    const written: string[] = [];
    const failures: Failure[] = [];
    const failed = (client: Failure['client']) => (error: unknown) =>
      void failures.push({ mishap, client, message: (error as Error).message.split('\n')[1] ?? '' });
    const failuresOf = (client: Failure['client']): Failure[] =>
      failures.filter((each) => each.mishap === mishap && each.client === client);
    const stop = new AbortController();
    const directory = scene.directory(served);
    const known = join(directory, 'known');
    await scene.waitFor(() => scene.rig.write(known, 'known text'));
    const reader = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const text = await scene.rig.read(known).catch(failed('reader'));
        if (text === undefined) continue;
        assert.equal(text, 'known text');
        reads += 1;
      }
    };
    const writer = async (): Promise<void> => {
      for (let file = 0; !stop.signal.aborted; file += 1) {
        const name = join(directory, `file-${file}`);
        await scene.rig.write(name, name).then(() => written.push(name), failed('writer'));
      }
    };
    const working = Promise.all([reader(), writer()]);
    const clientsGoOn = async (): Promise<void> => {
      const [readBefore, writtenBefore] = [reads, written.length];
      await scene.waitFor(() => assert.ok(reads >= readBefore + 5 && written.length >= writtenBefore + 5));
    };
    const anotherClaim = async (): Promise<NamedClaim> => {
      const claim = await scene.createClaim(storageClass);
      await scene.bound(claim);
      await scene.waitFor(() => scene.rig.list(scene.directory(claim)));
      return claim;
    };
    const newGanesha = (old: number): Promise<void> =>
      scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
    try {
      await clientsGoOn();
      assert.equal(failures.length, 0);

      mishap = 'ganesha is killed';
      let ganesha = await scene.ganeshaPid();
      process.kill(ganesha, 'SIGKILL');
      await newGanesha(ganesha);
      await clientsGoOn();

      mishap = 'the configuration is cut off, and ganesha is killed';
      await truncate(join(scene.rig.exports, 'vfs.conf'), 300);
      ganesha = await scene.ganeshaPid();
      process.kill(ganesha, 'SIGKILL');
      await newGanesha(ganesha);
      await clientsGoOn();
      await anotherClaim();

      mishap = 'the bus hangs';
      ganesha = await scene.ganeshaPid();
      const [, bus = ''] =
        /program=dbus-daemon pid=(\d+)(?!.*program=dbus-daemon pid)/s.exec(scene.program.log()) ?? [];
      process.kill(Number(bus), 'SIGSTOP');
      await newGanesha(ganesha);
      await clientsGoOn();
      const large = await anotherClaim();

      mishap = 'the API server is away';
      scene.apiServer.standStill();
      try {
        await scene.waitFor(() => assert.match(scene.program.log(), /Stopped leading/));
        await clientsGoOn();
      } finally {
        scene.apiServer.goOn();
      }
      assert.deepEqual(failuresOf('reader'), []);
      assert.deepEqual(failuresOf('writer'), []);
      await anotherClaim();

      mishap = 'the disk is full';
      await folder.fill(scene.directory(large));
      await scene.waitFor(() => assert.ok(failuresOf('writer').length >= 5));
      const readBefore = reads;
      await scene.waitFor(() => assert.ok(reads >= readBefore + 5));
      assert.deepEqual(failuresOf('reader'), []);
      const volume = await scene.bound(large);
      await scene.deleteClaim(large);
      await scene.gone(volume);
      assert.equal(await isThere(scene.directory(large)), false);
      await clientsGoOn();
      assert.deepEqual(failuresOf('reader'), []);
    } finally {
      stop.abort();
      await working;
    }
    for (const name of written) assert.equal(await readFile(name, 'utf8'), name);
    const counts = Object.entries(Object.groupBy(failures, (each) => `${each.mishap}, ${each.client}`));
    const told = counts.map(([what, all = []]) => `${what}: ${all.length} failures, such as ${all[0]?.message ?? ''}`);
    context.diagnostic([`${reads} reads, ${written.length} writes`, ...told].join('\n'));
  });
});
