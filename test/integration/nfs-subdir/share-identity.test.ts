/** The share is known by its identity: nothing is concluded from an empty or another export. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { identityFile, readIdentity, writeIdentity } from '../../../provisioners/nfs-subdir/share-identity.ts';
import { Share } from '../../../provisioners/nfs-subdir/share.ts';
import { ShareError, shareKey } from '../../../provisioners/nfs-subdir/share-guard.ts';
import { OpenedDirectory, ProvisionError } from '../../../src/index.ts';
import { LockNotes } from '../../../src/run/provisioner-parts.ts';
import { eventually } from '../../support/eventually.ts';
import { shareIdentity, SubdirRig } from './rig.ts';

const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const lock = { namespace: 'ns1', name: 'lock' };
const signal = new AbortController().signal;
const another = '0e4b1e37-54b1-4c1e-8a5f-5d9d1f1e2b11';

describe('the share of nfs-subdir', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const identityPath = () => rig.path(identityFile);
  const identity = () => readFileSync(identityPath(), 'utf8').trim();
  /** A process that starts, with the lock's memory. */
  const started = (): Share => {
    const notes = new LockNotes({ client: rig.api.client, held: ['lease'], ...lock });
    return new Share(rig.mount, rig.guard(notes));
  };
  const createLock = (remembered?: string): void => {
    const annotations = remembered === undefined ? {} : { [shareKey]: remembered };
    rig.api.own.create(leases, { metadata: { ...lock, annotations }, spec: { holderIdentity: 'we' } });
  };
  const remembered = () => rig.api.own.get(leases, lock)?.metadata.annotations?.[shareKey];

  test('that is not mounted keeps its volumes: nothing counts as gone, and nothing is made', async () => {
    const volume = await rig.provision(rig.storageClass());
    renameSync(rig.mount, `${rig.mount}-gone`);
    try {
      await assert.rejects(rig.delete(volume), ShareError);
      const claim = rig.options(rig.storageClass(), rig.claim(), 'pvc-2');
      await assert.rejects(rig.make(claim), (error: unknown) => {
        assert.ok(error instanceof ProvisionError);
        assert.equal(error.state, 'no-change');
        assert.match(error.message, /^the export is not mounted at .*ENOENT.*Nothing is created or deleted$/);
        return true;
      });
    } finally {
      renameSync(`${rig.mount}-gone`, rig.mount);
    }
    await rig.delete(volume);
    assert.deepEqual(rig.entries(), ['archived-ns-c-pvc-1']);
  });

  for (const [what, change] of [
    ['empty', () => rmSync(identityPath())],
    ['another one', () => writeFileSync(identityPath(), another)],
  ] as const) {
    test(`that is ${what} all at once is not used until it is back`, async () => {
      const volume = await rig.provision(rig.storageClass({ onDelete: 'delete' }));
      renameSync(rig.path('ns-c-pvc-1'), rig.path('../aside'));
      change();
      await assert.rejects(rig.delete(volume), /Nothing is created or deleted/);
      await assert.rejects(rig.provision(rig.storageClass(), {}, 'pvc-2'), /Nothing is created or deleted/);
      writeFileSync(identityPath(), shareIdentity);
      renameSync(rig.path('../aside'), rig.path('ns-c-pvc-1'));
      await rig.delete(volume);
      assert.deepEqual(rig.entries(), []);
    });
  }

  describe('without an identity', () => {
    beforeEach(() => rmSync(identityPath()));

    test('gets one where no volume is, which everybody may read and the lock remembers', async () => {
      const umask = process.umask(0o077);
      createLock();
      await started()
        .check(signal)
        .finally(() => process.umask(umask));
      assert.match(identity(), /^[0-9a-f-]{36}$/);
      assert.equal(statSync(identityPath()).mode & 0o777, 0o644);
      assert.equal(remembered(), identity());
      assert.deepEqual(rig.entries(), []);
    });

    test('gets one where at least one directory of its volumes is there', async () => {
      createLock();
      for (const name of ['lost', 'there']) rig.volume(`/exp/ns/${name}`, 'class', name);
      rig.write('ns/there/file');
      await started().check(signal);
      assert.equal(remembered(), identity());
    });

    test('is refused where volumes are and none of their directories', async () => {
      createLock();
      const volume = rig.volume('/exp/ns/lost', 'class');
      rig.volume('/elsewhere/x', 'class', 'of-another-export');
      mkdirSync(rig.path('ns'));
      await assert.rejects(
        started().check(signal),
        /has none of the directories of this provisioner's volumes: it is empty, not mounted, or another one\. Nothing is created or deleted.*kubectl annotate --overwrite leases\/lock -n ns1 .*=new$/,
      );
      assert.ok(!existsSync(identityPath()));
      assert.equal(remembered(), undefined);
      rig.volumes.delete(volume.metadata.name);
      await started().check(signal);
      assert.equal(remembered(), identity());
    });

    test('is refused where one is remembered, until the operator accepts it', async () => {
      createLock(another);
      rig.write('ns/there/file');
      rig.volume('/exp/ns/there', 'class');
      await assert.rejects(started().check(signal), new RegExp(`no file .*the share of the volumes is ${another}`));
      const changed = rig.api.own.get(leases, lock)!;
      rig.api.own.update(leases, { ...changed, metadata: { ...changed.metadata, annotations: { [shareKey]: 'new' } } });
      await started().check(signal);
      assert.equal(remembered(), identity());
      await started().check(signal);
    });

    test('gets one from many concurrent attempts of a process, only one of which writes a file', async (t) => {
      createLock();
      const share = started();
      const made = new Set<string>();
      const watcher = watch(rig.mount, (_event, name) => made.add(String(name)));
      t.after(() => watcher.close());
      await Promise.all(Array.from({ length: 12 }, () => share.check(signal)));
      rig.write('last');
      await eventually(() => assert.ok(made.has('last')));
      const drafts = [...made].filter((name) => name.startsWith(`${identityFile}.`));
      assert.equal(drafts.length, 1);
    });

    test('gets one and the same from many that come at once, some of which are killed', async () => {
      const writer = new URL('./identity-writer.ts', import.meta.url);
      const children = Array.from({ length: 6 }, () => fork(writer, [rig.mount], { stdio: 'ignore' }));
      children[0]?.once('message', () => children[0]?.kill('SIGKILL'));
      const told = new Set<string>();
      for (const child of children) child.on('message', (text: string) => text !== 'ready' && told.add(text));
      await Promise.all(children.map((child) => once(child, 'exit')));
      await using root = await OpenedDirectory.open(rig.mount);
      assert.deepEqual([...told], [await readIdentity(root)]);
      writeFileSync(`${identityPath()}.of-one-that-was-killed`, 'half');
      assert.equal(await writeIdentity(root), identity());
      assert.deepEqual(rig.entries(), []);
    });
  });

  test('of another identity than remembered is refused, and the identity names both', async () => {
    createLock(another);
    rig.write('ns/there/file');
    rig.volume('/exp/ns/there', 'class');
    const both = new RegExp(`its identity is ${shareIdentity}; the share of the volumes is ${another}`);
    await assert.rejects(started().check(signal), both);
    assert.equal(identity(), shareIdentity);
  });

  test('loses what a process left that was killed while it wrote the identity', async () => {
    createLock();
    linkSync(identityPath(), `${identityPath()}.unfinished`);
    await started().check(signal);
    assert.deepEqual(rig.entries(), []);
  });

  test('that another provisioner gave an identity is accepted, and remembered', async () => {
    createLock();
    await started().check(signal);
    assert.equal(remembered(), shareIdentity);
  });

  test('is known while the process lives where nothing can be remembered, and at its start by the file alone', async () => {
    rig.volume('/exp/ns/lost', 'class');
    const share = new Share(rig.mount, rig.guard());
    await share.check(signal);
    writeFileSync(identityPath(), another);
    await assert.rejects(share.check(signal), /put a UUID into .*\.share-identity in its root/);
  });

  test('is not used while its identity cannot be read', async () => {
    for (const damage of [() => writeFileSync(identityPath(), 'x'), () => mkdirSync(identityPath())]) {
      rmSync(identityPath(), { force: true, recursive: true });
      damage();
      await assert.rejects(new Share(rig.mount, rig.guard()).check(signal), /\.share-identity of the export/);
    }
  });

  for (const pathPattern of ['.share-identity', '.share-identity.x/y', '/./.Share-Identity/a']) {
    test(`keeps the name of its identity from volumes: ${pathPattern}`, async () => {
      await assert.rejects(rig.provision(rig.storageClass({ pathPattern })), {
        state: 'finished',
        message: /is reserved for the identity of the share$/,
      });
      await rig.provision(rig.storageClass({ pathPattern: `a/${pathPattern}` }));
    });
  }
});
