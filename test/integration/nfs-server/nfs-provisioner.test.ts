/** The steps of making and deleting a volume, on real directories, with a server that can refuse at any of them. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import {
  type FulfilContext,
  GidAllocator,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type ProvisionOptions,
  silentLogger,
  type StorageClass,
} from '../../../src/index.ts';
import { AtomicFile } from '../../../provisioners/nfs-server/atomic-file.ts';
import { ClassVolumes } from '../../../provisioners/nfs-server/class-volumes.ts';
import { ExportLimit } from '../../../provisioners/nfs-server/export-limit.ts';
import { Exports } from '../../../provisioners/nfs-server/exports.ts';
import { defaultConfig, exportBlock, exportsIn } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { LimitEvents } from '../../../provisioners/nfs-server/limit-events.ts';
import { NfsProvisioner } from '../../../provisioners/nfs-server/nfs-provisioner.ts';
import { maxCallMs } from '../../../provisioners/nfs-server/run.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';
import { hasStorage } from '../../../src/provision/recoverable.ts';
import { Attempts } from '../../support/attempts.ts';
import { leftRecord, type RecoveryScene, recoveryScene } from '../provision/recovery-scene.ts';
import { resource } from '../provision/rig.ts';
import { ServerInMemory } from './server-in-memory.ts';

const { signal } = new AbortController();
const storageClass: StorageClass = { metadata: { name: 'nfs' }, provisioner: 'example.com/nfs' };
const base = defaultConfig({ recoveryRoot: '/export', nfsV3: true });

const optionsFor = (uid: string, more: Partial<StorageClass> = {}): ProvisionOptions => {
  const claim: PersistentVolumeClaim = {
    metadata: { name: `claim-${uid}`, namespace: 'default', uid },
    spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Mi' } } },
  };
  return { claim, storageClass: { ...storageClass, ...more }, volumeName: `pvc-${uid}`, selectedNodeName: '' };
};

/** A first attempt for a claim. */
const make = (provisioner: NfsProvisioner, options: ProvisionOptions): Promise<PersistentVolume> =>
  new Attempts(provisioner).make(options, { signal });

describe('NfsProvisioner', () => {
  let root: string;
  let server: ServerInMemory;
  let woken: string[];
  let events: string[];
  let quotaFailure: Error | undefined;
  let diskFailure: Error | undefined;
  let identityFailure: Error | undefined;
  const config = (): string => path.join(root, 'vfs.conf');
  const text = (): Promise<string> => readFile(config(), 'utf8');
  const isThere = async (name: string): Promise<boolean> =>
    (await stat(path.join(root, name)).catch(() => undefined)) !== undefined;

  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'nfs-provisioner-'));
    await writeFile(config(), base);
    server = new ServerInMemory(config());
    woken = [];
    events = [];
    quotaFailure = undefined;
    diskFailure = undefined;
    identityFailure = undefined;
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const open = async ({ max, identity = 'me' }: { max?: number; identity?: string } = {}): Promise<NfsProvisioner> => {
    const exports = await Exports.open({
      file: new AtomicFile(config()),
      format: { write: exportBlock, read: exportsIn },
      server,
      logger: silentLogger,
    });
    const client = { select: () => Promise.resolve([]) };
    const volumes = { list: () => [] };
    const quota = {
      set: () =>
        quotaFailure === undefined ? Promise.resolve({ id: 5, block: '\nline\n' }) : Promise.reject(quotaFailure),
      remove: () => Promise.resolve(),
    };
    return new NfsProvisioner({
      identity,
      keepIdentity: () => (identityFailure === undefined ? Promise.resolve() : Promise.reject(identityFailure)),
      directories: new VolumeDirectories(root),
      exports,
      lostExports: { coming: () => undefined, leaving: () => undefined, whenRestored: () => Promise.resolve() },
      quota,
      limit: new ExportLimit({ max, count: () => exports.count, wake: (uid) => void woken.push(uid) }),
      limitEvents: new LimitEvents({
        event: ({ name }, type, reason, message) => void events.push(`${name} ${type} ${reason} ${message}`),
      }),
      classVolumes: new ClassVolumes({ volumes, isExported: () => true }),
      gids: new GidAllocator({ client }),
      serverAddress: () => Promise.resolve('10.0.0.1'),
      whenServing: () => Promise.resolve(),
      checkDisk: () => {
        if (diskFailure !== undefined) throw diskFailure;
      },
      logger: silentLogger,
    });
  };
  const context = (deleted: string[] = []): FulfilContext => ({
    signal,
    mayExist: true,
    beforeDelete: (handle) => Promise.resolve(void deleted.push(handle)),
  });

  test('gives the same volume at every repeat, also in another process', async () => {
    const first = await make(await open(), optionsFor('a'));
    await writeFile(path.join(root, 'pvc-a/file'), 'data');
    const second = await make(await open(), optionsFor('a'));
    assert.deepEqual(second, first);
    assert.equal(await readFile(path.join(root, 'pvc-a/file'), 'utf8'), 'data');
    assert.equal(first.metadata.annotations?.['Project_Id'], '5');
  });

  test('writes the mount options of the parameter on the volume, unless the class has its own', async () => {
    const key = 'volume.beta.kubernetes.io/mount-options';
    const provisioner = await open();
    const parameters = { mountOptions: 'vers=4.1' };
    const old = await make(provisioner, optionsFor('a', { parameters }));
    assert.equal(old.metadata.annotations?.[key], 'vers=4.1');
    const both = optionsFor('b', { parameters, mountOptions: ['nolock'] });
    assert.equal((await make(provisioner, both)).metadata.annotations?.[key], undefined);
  });

  test('leaves nothing behind when the export fails, and succeeds later', async () => {
    const provisioner = await open();
    server.refusal = new Error('refused');
    await assert.rejects(make(provisioner, optionsFor('a')), {
      message: 'error creating export for volume: refused',
      state: 'finished',
    });
    assert.deepEqual([await text(), await isThere('pvc-a'), server.served.size], [base, false, 1]);
    server.refusal = undefined;
    await make(provisioner, optionsFor('a'));
    assert.equal(await isThere('pvc-a'), true);
  });

  test('takes export and directory back when the quota fails', async () => {
    quotaFailure = new Error('no such project');
    await assert.rejects(make(await open(), optionsFor('a')), /^.*error creating quota for volume: no/);
    assert.deepEqual([await text(), await isThere('pvc-a'), server.served.size], [base, false, 1]);
  });

  test('keeps a volume that was there before a failed attempt', async () => {
    await make(await open(), optionsFor('a'));
    quotaFailure = new Error('no such project');
    await assert.rejects(make(await open(), optionsFor('a')), /error creating quota/);
    assert.equal(await isThere('pvc-a'), true);
    assert.equal(server.served.get(1), path.join(root, 'pvc-a'));
  });

  test('a claim whose export fails is tried again with back-off, and leaves nothing behind in between', async () => {
    server.refusal = new Error('refused');
    const scene = await recoveryScene({ rig: { controller: { provisioner: await open() } } });
    await using rig = scene.rig;
    const { uid, name, journal, passPause } = scene;
    await rig.start();
    for (let pause = 1; pause < 4; pause += 1) {
      await rig.settle();
      assert.equal(server.calls, pause, 'nothing but the end of the pause brings the next attempt');
      assert.deepEqual([await text(), await isThere(name), journal.records.size], [base, false, 0]);
      await passPause();
    }
    assert.deepEqual(rig.limiter.delays(uid), [1000, 2000, 4000, 8000]);
    assert.equal(journal.writes.includes('put delete'), false);
    server.refusal = undefined;
    await passPause();
    assert.equal(rig.volume(name)?.spec.nfs?.path, path.join(root, name));
  });

  test('leaves what an earlier attempt may have put into a volume, until revoke has asked', async () => {
    const provisioner = await open();
    const plan = await provisioner.plan(optionsFor('a'), { signal });
    server.refusal = new Error('refused');
    const deleted: string[] = [];
    await assert.rejects(provisioner.fulfil(plan, context(deleted)), { state: 'finished' });
    assert.deepEqual([await text(), await isThere('pvc-a'), deleted], [base, true, []]);
    server.refusal = undefined;
    quotaFailure = new Error('no such project');
    await assert.rejects(provisioner.fulfil(plan, context(deleted)), /error creating quota/);
    assert.deepEqual([...server.served.values()], ['/', path.join(root, 'pvc-a')]);
    await provisioner.revoke(plan, { ...context(deleted), handle: undefined });
    assert.deepEqual([await text(), await isThere('pvc-a'), server.served.size], [base, false, 1]);
    assert.deepEqual(deleted, [path.join(root, 'pvc-a')]);
  });

  test('plans no volume before its identity is on the disk, and deletes in any case', async () => {
    const provisioner = await open();
    const made = await make(provisioner, optionsFor('b'));
    identityFailure = new Error('ENOSPC: no space left on device');
    const expected = {
      state: 'no-change',
      message: 'error writing the identity file: ENOSPC: no space left on device',
    };
    await assert.rejects(provisioner.plan(optionsFor('a'), { signal }), expected);
    await provisioner.delete(made, { signal });
    assert.equal(await isThere('pvc-b'), false);
    identityFailure = undefined;
    await make(provisioner, optionsFor('a'));
  });

  test('gives the group id of a volume that was planned and not made to another one once its claim is settled', async () => {
    const provisioner = await open();
    const parameters = { gidMin: '3000', gidMax: '3000' };
    const plan = await provisioner.plan(optionsFor('a', { parameters }), { signal });
    diskFailure = new Error('the disk does not answer');
    await assert.rejects(provisioner.fulfil(plan, { ...context(), mayExist: false }), { state: 'no-change' });
    diskFailure = undefined;
    await assert.rejects(make(provisioner, optionsFor('b', { parameters })), /all 1 group ids from 3000 to 3000 are/);
    provisioner.forget('a');
    const made = await make(provisioner, optionsFor('b', { parameters }));
    assert.equal(made.metadata.annotations?.['pv.beta.kubernetes.io/gid'], '3000');
    provisioner.forget('b');
    await assert.rejects(make(provisioner, optionsFor('a', { parameters })), /all 1 group ids from 3000 to 3000 are/);
  });

  test('serves no more volumes than it may, and wakes who waits', async () => {
    const provisioner = await open({ max: 1 });
    const made = await make(provisioner, optionsFor('a'));
    const { claim } = optionsFor('b');
    assert.equal(provisioner.shouldProvision(claim), false);
    assert.equal(
      provisioner.shouldProvision(optionsFor('a').claim),
      true,
      'it has its export, and may not be saved yet',
    );
    await assert.rejects(make(provisioner, optionsFor('c')), {
      name: 'IgnoredError',
      reason: 'export limit of 1 has been reached',
    });
    assert.equal(await isThere('pvc-c'), false);
    await provisioner.delete(made, { signal });
    assert.deepEqual(woken, ['b', 'c']);
    assert.equal(provisioner.shouldProvision(claim), true);
  });

  test('records an event on a claim that waits for a volume to be deleted, once for each limit', async () => {
    const provisioner = await open({ max: 2 });
    const made = await make(provisioner, optionsFor('a'));
    const ofClass = optionsFor('b', { parameters: { maxExports: '0' } });
    const waits = async (options: ProvisionOptions): Promise<void> => {
      await assert.rejects(make(provisioner, options), { name: 'IgnoredError' });
    };
    await waits(ofClass);
    await waits(ofClass);
    const text = 'claim-b Normal ProvisioningWaiting Waiting for the deletion of a volume: all that';
    assert.deepEqual(events, [`${text} maxExports=0 of StorageClass "nfs" allows exist`]);
    await make(provisioner, optionsFor('c'));
    for (let times = 0; times < 3; times++) assert.equal(provisioner.shouldProvision(ofClass.claim), false);
    await waits(optionsFor('b'));
    assert.deepEqual(events.slice(1), [`${text} -max-exports=2 allows exist`]);
    await provisioner.delete(made, { signal });
    assert.equal(provisioner.shouldProvision(ofClass.claim), true);
    provisioner.forget('b');
    await make(provisioner, optionsFor('d'));
    assert.equal(provisioner.shouldProvision(optionsFor('b').claim), false);
    assert.equal(events.length, 3, 'what was recorded is not kept for a claim that is settled');
  });

  test('revokes what was made for a claim that is gone, and asks before', async () => {
    const provisioner = await open();
    const plan = await provisioner.plan(optionsFor('a'), { signal });
    assert.deepEqual(JSON.parse(JSON.stringify(plan)), plan, 'it can be recorded');
    assert.equal(await isThere('pvc-a'), false, 'a plan has no side effects');
    const volume = await provisioner.fulfil(plan, context());
    const deleted: string[] = [];
    const revoking = { ...context(deleted), handle: undefined };
    const next = await open();
    await next.revoke(plan, revoking);
    assert.deepEqual([await text(), await isThere('pvc-a'), server.served.size], [base, false, 1]);
    assert.deepEqual(deleted, [path.join(root, 'pvc-a')]);
    assert.equal(hasStorage(provisioner, volume, deleted[0]!), true);
    await next.revoke(plan, revoking);
    assert.equal(deleted.length, 1, 'nothing is left to ask about');
  });

  describe('after a crash', () => {
    /** What a killed process has made for claim `ns/a`, and the next one, which is not started yet. */
    const crashed = async ({ isRecorded }: { isRecorded: boolean }): Promise<RecoveryScene> => {
      const scene = await recoveryScene({ rig: { controller: { provisioner: await open(), maxCallMs } } });
      const { uid, since, journal, name } = scene;
      const earlier = await open();
      const plan = await earlier.plan(optionsFor(uid), { signal });
      await earlier.fulfil(plan, context());
      await writeFile(path.join(root, name, 'file'), 'data');
      if (isRecorded) journal.leave({ record: leftRecord(uid, { plan, since }), owner: 'own' });
      return scene;
    };

    test('removes what was made for a claim that is gone, two seconds after the start', async () => {
      const scene = await crashed({ isRecorded: true });
      await using rig = scene.rig;
      const { clock, name } = scene;
      rig.deleteClaim('a');
      await rig.start();
      await clock.advance(2000 - 1);
      await rig.settle();
      assert.equal(await isThere(name), true);
      await scene.undone();
      assert.deepEqual([await text(), await isThere(name), server.served.size], [base, false, 1]);
    });

    for (const isRecorded of [true, false]) {
      test(`keeps what an administrator has set to Retain and freed meanwhile, its record ${isRecorded ? 'open' : 'closed'}`, async () => {
        const scene = await crashed({ isRecorded });
        await using rig = scene.rig;
        const { uid, name, journal } = scene;
        const directory = path.join(root, name);
        const claimRef = { namespace: 'ns', name: 'a', uid };
        const nfs = { server: '10.0.0.1', path: directory };
        rig.addVolume(name, 'Bound', { spec: { claimRef, nfs, persistentVolumeReclaimPolicy: 'Retain' } });
        rig.deleteClaim('a');
        rig.releaseVolume(name);
        rig.api.delete(resource.volumes, { name });
        await rig.start();
        await scene.undone();
        await scene.pass(120_000);
        assert.equal(await readFile(path.join(directory, 'file'), 'utf8'), 'data');
        assert.equal(server.served.get(1), directory);
        assert.ok((await text()).includes(directory));
        assert.equal(journal.records.size, 0);
      });
    }
  });

  test('knows the storage of a volume that was imported under another name', async () => {
    const provisioner = await open();
    const volume = await make(provisioner, optionsFor('a'));
    const imported = { metadata: { name: 'imported' }, spec: { nfs: { ...volume.spec.nfs!, server: 'renamed' } } };
    const keys = provisioner.storageKeys(volume);
    assert.ok(provisioner.storageKeys(imported).some((key) => keys.includes(key)));
    for (const path of ['', '/', '/.', '/part', '/part/of/it/', '/../pvc-a']) {
      const nfs = { server: 'any', path: `${volume.spec.nfs!.path}${path}` };
      const found = provisioner.storageKeys({ metadata: { name: 'part' }, spec: { nfs } });
      assert.ok(
        found.some((key) => keys.includes(key)),
        path,
      );
      const volumeAttributes = { server: 'any', share: volume.spec.nfs!.path, subDir: path.slice(1) };
      const csi = { driver: 'nfs.csi.k8s.io', volumeHandle: 'any', volumeAttributes };
      const inDriver = provisioner.storageKeys({ metadata: { name: 'part' }, spec: { csi } });
      assert.ok(
        inDriver.some((key) => keys.includes(key)),
        `${path} through the CSI driver`,
      );
    }
    for (const csi of [
      { driver: 'nfs.csi.k8s.io', volumeHandle: `any#${root.slice(1)}#pvc-a#u#retain` },
      {
        driver: 'nfs.csi.k8s.io',
        volumeHandle: 'any',
        volumeAttributes: { SERVER: 'any', Share: root, SubDir: 'pvc-a' },
      },
      {
        driver: 'renamed',
        volumeHandle: 'any',
        volumeAttributes: { server: 'any', share: '/', subDir: 'pvc-a/below' },
      },
      { driver: 'another', volumeHandle: 'any:/pvc-a' },
    ]) {
      const found = provisioner.storageKeys({ metadata: { name: 'theirs' }, spec: { csi } });
      assert.ok(
        found.some((key) => keys.includes(key)),
        JSON.stringify(csi),
      );
    }
    const above = { metadata: { name: 'root' }, spec: { nfs: { server: 'any', path: root } } };
    assert.ok(!provisioner.storageKeys(above).some((key) => keys.includes(key)), 'of what lies above');
    const other = await make(provisioner, optionsFor('b'));
    assert.ok(!provisioner.storageKeys(other).some((key) => keys.includes(key)));
    assert.deepEqual(provisioner.storageKeys({ metadata: { name: 'pvc-a' }, spec: {} }), []);
  });

  test('does not revoke what may not be deleted', async () => {
    const provisioner = await open();
    const plan = await provisioner.plan(optionsFor('a'), { signal });
    await provisioner.fulfil(plan, context());
    const beforeDelete = (): Promise<void> => Promise.reject(new Error('a volume has it'));
    await assert.rejects(provisioner.revoke(plan, { signal, handle: undefined, beforeDelete }), /a volume has it/);
    assert.equal(await isThere('pvc-a'), true);
  });

  test('leaves the plans of another provisioner to that one', async () => {
    const plan = await (await open({ identity: 'another' })).plan(optionsFor('a'), { signal });
    const provisioner = await open();
    const expected = { state: 'no-change', message: /by the provisioner with identity another/ };
    await assert.rejects(provisioner.fulfil(plan, context()), expected);
    await assert.rejects(provisioner.revoke(plan, { ...context(), handle: undefined }), expected);
  });

  for (const name of ['vfs.conf', 'nfs-provisioner.identity', 'v4recov', '..', 'pvc-a/../vfs.conf']) {
    test(`refuses to delete a volume that is called ${name}`, async () => {
      const provisioner = await open();
      const { metadata, spec } = await make(provisioner, optionsFor('a'));
      await mkdir(path.join(root, 'v4recov'));
      const forged = { metadata: { ...metadata, name }, spec };
      await assert.rejects(provisioner.delete(forged, { signal }), /is not the name of a volume/);
      assert.equal((await isThere('vfs.conf')) && (await isThere('v4recov')), true);
    });
  }

  test('deletes by the name, and says which annotation is missing', async () => {
    const provisioner = await open();
    const { metadata, spec } = await make(provisioner, optionsFor('a'));
    const annotations = { ...metadata.annotations };
    delete annotations['Export_Id'];
    const broken = { metadata: { ...metadata, annotations }, spec };
    await assert.rejects(provisioner.delete(broken, { signal }), /annotation with key Export_Id/);
    assert.equal(await isThere('pvc-a'), true);
    const elsewhere = { metadata, spec: { nfs: { server: '10.0.0.1', path: '/etc' } } };
    await provisioner.delete(elsewhere, { signal });
    await provisioner.delete(elsewhere, { signal });
    assert.equal(await isThere('pvc-a'), false);
  });

  test('follows no symbolic link when it deletes', async () => {
    const provisioner = await open();
    const volume = await make(provisioner, optionsFor('a'));
    await mkdir(path.join(root, 'bait'));
    await writeFile(path.join(root, 'bait/precious'), 'data');
    await symlink(path.join(root, 'bait'), path.join(root, 'pvc-a/link'));
    await provisioner.delete(volume, { signal });
    assert.equal(await readFile(path.join(root, 'bait/precious'), 'utf8'), 'data');
    assert.equal(await isThere('pvc-a'), false);
  });
});
