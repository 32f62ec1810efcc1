/** What becomes of exports when ganesha, its bus, or the provisioner itself ends. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, afterEach, before, describe, test } from 'node:test';
import type { V1PersistentVolume } from '@kubernetes/client-node';
import { exportBlock, exportsIn } from '../../provisioners/nfs-server/ganesha-config.ts';
import { eventually } from '../support/eventually.ts';
import { findNfsPrograms } from '../support/nfs/nfs-programs.ts';
import { isThere, type NamedClaim, NfsScene } from '../support/nfs/nfs-scene.ts';

const programs = await findNfsPrograms();

describe('the exports of nfs-provisioner', { skip: programs.missing ?? false }, () => {
  let scene: NfsScene;
  let storageClass: string;
  const served: { claim: NamedClaim; volume: V1PersistentVolume }[] = [];

  const serve = async (count: number): Promise<void> => {
    const claims = await Promise.all(Array.from({ length: count }, () => scene.createClaim(storageClass)));
    for (const claim of claims) served.push({ claim, volume: await scene.bound(claim) });
  };
  /** Every volume can be read, and there is nothing else. */
  const allServed = (): Promise<void> =>
    scene.waitFor(async () => {
      for (const { claim } of served) await scene.rig.list(scene.directory(claim));
    });
  const restart = async (args: string[] = []): Promise<void> => {
    await scene.program.stop();
    await scene.start(args);
  };

  before(async () => {
    scene = await NfsScene.make(programs);
    await scene.start();
    storageClass = await scene.createClass();
    await serve(5);
  });
  afterEach(async (context) => {
    if ('passed' in context && !context.passed) console.error(await scene.rig.log());
  });
  after(() => scene[Symbol.asyncDispose]());

  test('are all back after ganesha was killed amid writes, and no written file is lost', async () => {
    const written: string[] = [];
    const stop = new AbortController();
    const writing = Promise.all(
      served.map(async ({ claim }, writer) => {
        for (let file = 0; !stop.signal.aborted; file += 1) {
          const name = join(scene.directory(claim), `file-${writer}-${file}`);
          await scene.rig.write(name, name).then(
            () => written.push(name),
            () => undefined, // the server was away
          );
        }
      }),
    );
    await eventually(() => assert.ok(written.length >= 10));
    const old = await scene.ganeshaPid();
    process.kill(old, 'SIGKILL');
    const late = await scene.createClaim(storageClass); // while the server is away
    await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
    await allServed();
    const before = written.length;
    await eventually(() => assert.ok(written.length >= before + 10));
    stop.abort();
    await writing;
    for (const name of written) assert.equal(await readFile(name, 'utf8'), name);
    served.push({ claim: late, volume: await scene.bound(late) });
    await allServed();
  });

  test('are all back after the bus was killed, and new ones are added', async () => {
    const old = await scene.ganeshaPid();
    const [, bus = ''] = /program=dbus-daemon pid=(\d+)(?!.*program=dbus-daemon pid)/s.exec(scene.program.log()) ?? [];
    process.kill(Number(bus), 'SIGKILL');
    await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
    await serve(1);
    await allServed();
  });

  for (const { title, damage } of [
    { title: 'emptied', damage: (file: string) => writeFile(file, '') },
    { title: 'cut off', damage: (file: string) => truncate(file, 300) },
    { title: 'removed', damage: (file: string) => rm(file) },
  ]) {
    test(`are all back after the configuration was ${title} and ganesha was killed`, async () => {
      await damage(join(scene.rig.exports, 'vfs.conf'));
      const old = await scene.ganeshaPid();
      process.kill(old, 'SIGKILL');
      await scene.waitFor(async () => assert.notEqual(await scene.ganeshaPid(), old));
      await allServed();
      await serve(1);
      await allServed();
    });
  }

  test('are all back after the bus was killed and its directory removed', async () => {
    const folder = join(scene.rig.folder, 'run');
    await restart(['-dbus-socket', join(folder, 'bus')]);
    await allServed();
    await rm(folder, { recursive: true });
    const [, bus = ''] = /program=dbus-daemon pid=(\d+)(?!.*program=dbus-daemon pid)/s.exec(scene.program.log()) ?? [];
    process.kill(Number(bus), 'SIGKILL');
    await serve(1);
    await allServed();
    await restart();
  });

  test('are served beside those of a file that the configuration includes, and have no id of these', async () => {
    const theirs = join(scene.rig.exports, 'theirs');
    const included = join(scene.rig.folder, 'theirs.conf');
    const free = 1 + Math.max(...exportsIn(await scene.config()).map(({ id }) => id));
    await mkdir(theirs);
    await writeFile(included, exportBlock({ id: free, path: theirs, squash: 'no_root_squash' }));
    await scene.program.stop();
    const whole = await scene.config();
    await writeFile(join(scene.rig.exports, 'vfs.conf'), `${whole}\n%include "${included}"\n`);
    await scene.start();
    await allServed();
    await serve(2);
    await scene.rig.list(theirs);
    await scene.program.stop();
    await writeFile(join(scene.rig.exports, 'vfs.conf'), (await scene.config()).replace(/^%include.*$/m, ''));
    await scene.start();
    await allServed();
  });

  test('stay with a provisioner that is started again: identity, ids and volumes', async () => {
    const identity = await readFile(join(scene.rig.exports, 'nfs-provisioner.identity'), 'utf8');
    const stopped = scene.program;
    const ganesha = await scene.ganeshaPid();
    await restart();
    assert.equal(await stopped.ending(), 'exit code 0');
    assert.throws(() => process.kill(ganesha, 0), /ESRCH/, 'ganesha went with it');
    await serve(1);
    const volumes = served.map(({ volume }) => volume.metadata?.annotations ?? {});
    assert.ok(volumes.every((annotations) => annotations['Provisioner_Id'] === identity));
    assert.equal(new Set(volumes.map((annotations) => annotations['Export_Id'])).size, served.length);
    await allServed();
    const [first] = served.splice(0, 1);
    await scene.deleteClaim(first!.claim);
    await scene.gone(first!.volume);
    assert.equal(await isThere(scene.directory(first!.claim)), false);
  });

  test('are taken over when the provisioner was killed, and its ganesha with it', async () => {
    const ganesha = await scene.ganeshaPid();
    await scene.program.stop('SIGKILL');
    await eventually(() => assert.throws(() => process.kill(ganesha, 0), /ESRCH/));
    await scene.start();
    await allServed();
  });

  test('survive a configuration that has a block for a directory that is gone', async () => {
    const [lost] = served.splice(0, 1);
    await scene.program.stop();
    await rm(scene.directory(lost!.claim), { recursive: true });
    await scene.start();
    await allServed();
    await scene.waitFor(() => assert.match(scene.program.log(), /An export is skipped: its directory is gone/));
    await scene.deleteClaim(lost!.claim);
    await scene.gone(lost!.volume);
    assert.ok(!(await scene.config()).includes(scene.directory(lost!.claim)));
  });

  test('survive a configuration whose end was never written', async () => {
    await scene.program.stop();
    const whole = await scene.config();
    await writeFile(join(scene.rig.exports, 'vfs.conf'), `${whole}\nEXPORT\n{\n\tExport_Id = 77;\n\tPath = /ex`);
    await scene.start();
    await allServed();
    assert.equal((await scene.config()).trimEnd(), whole.trimEnd());
    assert.match(await readFile(join(scene.rig.exports, 'vfs.conf.damaged'), 'utf8'), /Export_Id = 77/);
    assert.match(scene.program.log(), /The configuration of ganesha is damaged/);
  });

  for (const { title, damage } of [
    {
      title: 'one stray quote in a block',
      damage: (config: string) => config.replace(/Path = (?=.*\/pvc-)/, 'Path = "'),
    },
    { title: 'no export at all', damage: () => scene.rig.config() },
  ]) {
    test(`are restored from PersistentVolumes, with their ids, where the configuration has ${title}`, async () => {
      const ids = served.map(({ volume }) => volume.metadata?.annotations?.['Export_Id']);
      await scene.program.stop();
      await writeFile(join(scene.rig.exports, 'vfs.conf'), damage(await scene.config()));
      await scene.start();
      await serve(1);
      await allServed();
      const restored = exportsIn(await scene.config());
      for (const { volume } of served) {
        const { id } = restored.find(({ path }) => path === volume.spec?.nfs?.path) ?? {};
        assert.equal(String(id), volume.metadata?.annotations?.['Export_Id']);
      }
      assert.ok(!ids.includes(served.at(-1)?.volume.metadata?.annotations?.['Export_Id']), 'a living volume has it');
      assert.match(scene.program.log(), /Exports that were lost have been restored from PersistentVolumes/);
    });
  }

  test('that cannot be restored have an event, and the others are served', async () => {
    const [lost] = served.splice(0, 1);
    await scene.program.stop();
    await writeFile(join(scene.rig.exports, 'vfs.conf'), scene.rig.config());
    await rename(scene.directory(lost!.claim), `${scene.directory(lost!.claim)}.away`);
    await scene.start();
    await scene.event({ uid: lost!.volume.metadata?.uid ?? '' }, /^The volume is not exported: .* is gone$/, 'default');
    await allServed();
    await rename(`${scene.directory(lost!.claim)}.away`, scene.directory(lost!.claim));
    await scene.program.stop();
    await scene.start();
    served.push(lost!);
    await allServed();
  });

  test('keep their ids while the identity is lost, and are removed once it is restored as the event says', async () => {
    const file = join(scene.rig.exports, 'nfs-provisioner.identity');
    const old = await readFile(file, 'utf8');
    const idsOf = (config: string): number[] => exportsIn(config).map(({ id }) => id);
    const [lost] = served.splice(0, 1);
    await scene.program.stop();
    const taken = new Set(idsOf(await scene.config()));
    await writeFile(file, '');
    await writeFile(join(scene.rig.exports, 'vfs.conf'), scene.rig.config());
    await scene.start();
    const claim = await scene.createClaim(storageClass);
    const volume = await scene.bound(claim);
    assert.equal(taken.has(Number(volume.metadata?.annotations?.['Export_Id'])), false, 'no id is given twice');
    const message = new RegExp(`write ${old} into ${file} and restart`);
    await scene.event({ uid: lost!.volume.metadata?.uid ?? '' }, message, 'default');
    assert.match(scene.program.log(), new RegExp(`name another identity.* lost=${old}`));
    await scene.deleteClaim(claim);
    await scene.gone(volume);
    await scene.program.stop();
    await writeFile(file, old);
    await scene.start();
    await allServed();
    await scene.deleteClaim(lost!.claim);
    await scene.gone(lost!.volume);
    assert.equal(await isThere(scene.directory(lost!.claim)), false);
  });

  test('are removed also when an earlier removal was interrupted after the block was gone', async () => {
    const [half] = served.splice(0, 1);
    await scene.program.stop();
    const block = half!.volume.metadata?.annotations?.['EXPORT_block'] ?? '';
    await writeFile(join(scene.rig.exports, 'vfs.conf'), (await scene.config()).replace(block, ''));
    await scene.start();
    await scene.deleteClaim(half!.claim);
    await scene.gone(half!.volume);
    assert.equal(await isThere(scene.directory(half!.claim)), false);
    await allServed();
  });

  test('are limited, and a claim that waits is served as soon as a volume is gone', async () => {
    await restart([`-max-exports=${served.length + 1}`]);
    await serve(1);
    const waiting = await scene.createClaim(storageClass);
    const refused = new RegExp(`Not provisioning the claim now claim=${scene.namespace}/${waiting.name} `);
    await scene.waitFor(() => assert.match(scene.program.log(), refused));
    assert.equal(await isThere(scene.directory(waiting)), false);
    assert.match(
      await scene.event(waiting, /^Waiting for the deletion of a volume: /),
      /-max-exports=\d+ allows exist/,
    );
    const [freed] = served.splice(0, 1);
    await scene.deleteClaim(freed!.claim);
    served.push({ claim: waiting, volume: await scene.bound(waiting) });
    await allServed();
  });

  test('of a class are limited where the class says so', async () => {
    await restart();
    const limited = await scene.createClass({ maxExports: '1' });
    const first = await scene.createClaim(limited);
    const volume = await scene.bound(first);
    await restart(); // the volumes of the class are counted again
    const second = await scene.createClaim(limited);
    await scene.waitFor(() => assert.match(scene.program.log(), /export limit of 1 has been reached/));
    assert.equal(await isThere(scene.directory(second)), false);
    await scene.deleteClaim(first);
    await scene.gone(volume);
    served.push({ claim: second, volume: await scene.bound(second) });
  });

  test('are all gone with their claims, however often the provisioner is killed meanwhile', async () => {
    await scene.program.stop();
    for (let round = 1; round <= Number(process.env['KILL_ROUNDS'] ?? 6); round++) {
      await scene.start(); // with its defaults
      const claims = await Promise.all(Array.from({ length: 8 }, () => scene.createClaim(storageClass)));
      const isMade = async (): Promise<boolean> =>
        (await Promise.all(claims.map((each) => isThere(scene.directory(each))))).includes(true);
      await scene.waitFor(async () => assert.ok(await isMade()));
      await delay(Math.random() * 200); // at whatever step
      await scene.program.stop('SIGKILL');
      await Promise.all(claims.map((claim) => scene.deleteClaim(claim)));
    }
    await scene.start();
    const names = (paths: string[]): string[] => paths.filter((path) => path.includes('pvc-')).sort();
    const kept = served.map(({ claim }) => scene.directory(claim)).sort();
    await scene.waitFor(async () => {
      const { items } = await scene.admin.core.listPersistentVolume();
      const volumes = items.filter(
        ({ metadata }) => metadata?.annotations?.['pv.kubernetes.io/provisioned-by'] === scene.provisioner,
      );
      const directories = (await readdir(scene.rig.exports)).map((name) => join(scene.rig.exports, name));
      assert.deepEqual(names(volumes.map(({ spec }) => spec?.nfs?.path ?? '')), kept);
      assert.deepEqual(names(directories), kept);
      assert.deepEqual(names(exportsIn(await scene.config()).map(({ path }) => path)), kept);
    });
    await allServed();
  });

  test('begin anew with an empty directory: old volumes are left alone', async () => {
    await scene.program.stop();
    const old = await readFile(join(scene.rig.exports, 'nfs-provisioner.identity'), 'utf8');
    await rm(scene.rig.exports, { recursive: true });
    await mkdir(scene.rig.exports);
    await scene.rig.writeConfig();
    await scene.start();
    const [lost] = served.splice(0);
    await scene.deleteClaim(lost!.claim);
    await scene.waitFor(() => assert.match(scene.program.log(), new RegExp(`id ${old} did & can`)));
    assert.notEqual(await readFile(join(scene.rig.exports, 'nfs-provisioner.identity'), 'utf8'), old);
    await serve(1);
    await allServed();
  });
});
