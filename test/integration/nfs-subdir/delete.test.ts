import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { hasStorage } from '../../../src/provision/recoverable.ts';
import type { PersistentVolume } from '../../../src/index.ts';
import { SubdirRig } from './rig.ts';

const storagePath = 'nfs.io/storage-path';
const pathPattern = `\${.PVC.namespace}/\${.PVC.annotations.${storagePath}}`;
const annotated = (value: string) => ({ annotations: { [storagePath]: value } });

describe('a deleted volume of nfs-subdir', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const fates: (readonly [string, Record<string, string>, 'archived' | 'removed' | 'kept'])[] = [
    ['no parameters', {}, 'archived'],
    ...['true', 'True', '1', 't'].map(
      (word) => [`archiveOnDelete ${word}`, { archiveOnDelete: word }, 'archived'] as const,
    ),
    ...['false', 'f', '0', 'False'].map(
      (word) => [`archiveOnDelete ${word}`, { archiveOnDelete: word }, 'removed'] as const,
    ),
    ['onDelete delete, whatever archiveOnDelete', { onDelete: 'delete', archiveOnDelete: 'true' }, 'removed'],
    ['onDelete delete, and archiveOnDelete is no boolean', { onDelete: 'delete', archiveOnDelete: 'junk' }, 'removed'],
    ['onDelete retain, whatever archiveOnDelete', { onDelete: 'retain', archiveOnDelete: 'false' }, 'kept'],
    ['onDelete Delete, which is no value of it', { onDelete: 'Delete' }, 'archived'],
    ['an empty onDelete and archiveOnDelete false', { onDelete: '', archiveOnDelete: 'false' }, 'removed'],
    ['keys in another case, which are others', { archiveondelete: 'false', OnDelete: 'delete' }, 'archived'],
  ];
  for (const [what, parameters, fate] of fates) {
    test(`with ${what}: ${fate}`, async () => {
      const volume = await rig.provision(rig.storageClass(parameters));
      rig.write('ns-c-pvc-1/a/file', 'data');
      await rig.delete(volume);
      const name = { archived: 'archived-ns-c-pvc-1', kept: 'ns-c-pvc-1', removed: undefined }[fate];
      assert.deepEqual(rig.entries(), name === undefined ? [] : [name]);
      if (name !== undefined) assert.equal(rig.read(`${name}/a/file`), 'data');
    });
  }

  for (const word of ['no', '', ' true']) {
    test(`stays where archiveOnDelete is ${JSON.stringify(word)}, until the class is made again`, async () => {
      const storageClass = rig.storageClass({ archiveOnDelete: word });
      const volume = await rig.provision(storageClass);
      await assert.rejects(rig.delete(volume), {
        message: `invalid value for parameter archiveOnDelete: strconv.ParseBool: parsing "${word}": invalid syntax`,
      });
      assert.deepEqual(rig.entries(), ['ns-c-pvc-1']);
      rig.storageClass({ archiveOnDelete: 'false' }, { metadata: storageClass.metadata });
      await rig.delete(volume);
      assert.deepEqual(rig.entries(), []);
    });
  }

  test('that was never saved is settled as the class says, too', async () => {
    for (const [parameters, want] of [
      [{ onDelete: 'delete' }, []],
      [{}, ['archived-ns-c-pvc-1']],
    ] as const) {
      const storageClass = rig.storageClass(parameters);
      const made = await rig.make(rig.options(storageClass, rig.claim()));
      const unsaved = { ...made, spec: { ...made.spec, storageClassName: storageClass.metadata.name } };
      await rig.provisioner.delete(unsaved, { signal: new AbortController().signal });
      assert.deepEqual(rig.entries(), want);
    }
  });

  test('follows the class as it is now, not as it was', async () => {
    const storageClass = rig.storageClass({ onDelete: 'retain' });
    const volume = await rig.provision(storageClass);
    rig.storageClass({ archiveOnDelete: 'false' }, { metadata: storageClass.metadata });
    await rig.delete(volume);
    assert.deepEqual(rig.entries(), []);
  });

  test('waits for a class that is gone, which may be recreated', async () => {
    const storageClass = rig.storageClass({ archiveOnDelete: 'false' });
    const volume = await rig.provision(storageClass);
    rig.deleteClass(storageClass.metadata.name);
    await assert.rejects(rig.delete(volume), /StorageClass "class-\d+" does not exist any more.*recreate it/);
    assert.deepEqual(rig.entries(), ['ns-c-pvc-1']);
    rig.storageClass({ archiveOnDelete: 'false' }, { metadata: storageClass.metadata });
    await rig.delete(volume);
    assert.deepEqual(rig.entries(), []);
  });

  test('without a directory is a success, also without its class', async () => {
    await rig.delete(rig.volume('/exp/ns-c-pvc-1', 'gone'));
    await rig.delete(rig.volume('/exp/ns/a', 'gone'));
    assert.deepEqual(
      rig.log.map(({ level, message }) => [level, message]),
      ['ns-c-pvc-1', 'ns/a'].map((name) => ['warn', `path ${rig.path(name)} does not exist, deletion skipped`]),
    );
  });

  describe('that is archived', () => {
    test('never takes the name of an earlier archive, nor of a live volume', async () => {
      const storageClass = rig.storageClass({ pathPattern });
      for (const name of ['pvc-1', 'pvc-2', 'pvc-3']) {
        const volume = await rig.provision(storageClass, annotated('data'), name);
        rig.write('ns/data/file', name);
        await rig.delete(volume);
      }
      assert.deepEqual(rig.entries(), ['archived-data', 'archived-data-pvc-2', 'archived-data-pvc-3', 'ns']);
      assert.equal(rig.read('archived-data/file'), 'pvc-1');
      assert.equal(rig.read('archived-data-pvc-3/file'), 'pvc-3');
    });

    test('leaves an empty directory of that name alone, and numbers the rest', async () => {
      const storageClass = rig.storageClass();
      const volume = await rig.provision(storageClass);
      rig.write('ns-c-pvc-1/file');
      for (const name of ['archived-ns-c-pvc-1', 'archived-ns-c-pvc-1-pvc-1']) mkdirSync(rig.path(name));
      await rig.delete(volume);
      assert.ok(rig.exists('archived-ns-c-pvc-1-pvc-1-2/file'));
      assert.equal(rig.entries().length, 3);
    });

    test('gets a shorter name where its own leaves no room', async () => {
      const volumeName = `pvc-${'0'.repeat(36)}`;
      const sketch = { namespace: 'n'.repeat(63), name: 'ä'.repeat(75) };
      const volume = await rig.provision(rig.storageClass(), sketch, volumeName);
      await rig.delete(volume);
      const [archive = ''] = rig.entries();
      assert.ok(archive.startsWith('archived-nnn') && archive.endsWith(`-${volumeName}`), archive);
      assert.ok(Buffer.byteLength(archive) <= 255);
    });
  });

  describe('that the original made', () => {
    const foreign: [string, string][] = [
      ['outside the export', '/other/x'],
      ['in a sibling whose name begins alike', '/expx/y'],
      ['at the export itself', '/exp'],
      ['at the export itself, with a slash', '/exp/'],
      ['above the export', '/exp/../etc'],
      ['by way of a parent', '/exp/a/../../bait'],
    ];
    for (const [where, nfsPath] of foreign) {
      test(`is not touched when it lies ${where}`, async () => {
        rig.write('x/file');
        const { name } = rig.storageClass({ onDelete: 'delete' }).metadata;
        await assert.rejects(
          rig.delete(rig.volume(nfsPath, name)),
          /is not a path below the export \/exp: nothing is touched/,
        );
        assert.ok(rig.exists('x/file'));
      });
    }

    test('without an NFS source is an error, not a crash', async () => {
      const volume = rig.save({ metadata: { name: 'pvc-1' }, spec: { hostPath: { path: '/exp/a' } } }, 'any');
      await assert.rejects(rig.delete(volume), { message: 'volume pvc-1 has no NFS source' });
    });

    test('on a server that was renamed is deleted, with a warning', async () => {
      const { name } = rig.storageClass({ onDelete: 'delete' }).metadata;
      const volume = rig.volume('/exp/ns-c-pvc-1', name);
      volume.spec.nfs = { server: 'old', path: '/exp/ns-c-pvc-1' };
      rig.write('ns-c-pvc-1/file');
      await rig.delete(volume);
      assert.deepEqual(rig.entries(), []);
      assert.match(rig.log[0]?.message ?? '', /names another NFS server/);
    });
  });

  describe('beside others', () => {
    describe('that this provisioner did not make', () => {
      const stranger = (spec: PersistentVolume['spec'], name = 'static'): PersistentVolume => {
        const annotations = { 'pv.kubernetes.io/provisioned-by': 'cluster.local/renamed' };
        const made = { metadata: { name, annotations }, spec };
        rig.volumes.set(name, made);
        return made;
      };
      const nfs = (nfsPath: string) => ({ nfs: { server: 'srv', path: nfsPath } });
      const csi = (volumeAttributes: Record<string, string>) => ({
        csi: { driver: 'nfs.csi.k8s.io', volumeHandle: 'x', volumeAttributes },
      });

      for (const [lies, spec] of [
        ['in the same directory', nfs('/exp/ns/a')],
        ['in the same directory, written otherwise', nfs('/exp//ns/a/')],
        ['inside', nfs('/exp/ns/a/b/c')],
        ['above', nfs('/exp/ns')],
        ['in the same directory, of the CSI driver', csi({ server: 'srv', share: '/exp', subdir: 'ns/a' })],
        ['above, of the CSI driver', csi({ server: 'srv', share: '/exp/ns/' })],
      ] as const) {
        for (const parameters of [{ onDelete: 'delete' }, {}]) {
          test(`is kept while one lies ${lies}: ${JSON.stringify(parameters)}`, async () => {
            const storageClass = rig.storageClass({ pathPattern, ...parameters });
            const volume = await rig.provision(storageClass, annotated('a'));
            rig.write('ns/a/file');
            const { metadata } = stranger(spec);
            await assert.rejects(
              rig.delete(volume),
              /^Error: volume static, which another provisioner or an administrator created, uses srv:\/exp\/ns.*: \/exp\/ns\/a of volume pvc-1 is kept until static is deleted\. If static uses another directory: kubectl annotate persistentvolume static nfs-subdir-external-provisioner\/directory=none \(or/,
            );
            assert.deepEqual(rig.entries(), ['ns']);
            assert.ok(rig.exists('ns/a/file'));
            rig.volumes.delete(metadata.name);
            await rig.delete(volume);
            assert.ok(!rig.exists('ns/a'));
          });
        }
      }

      for (const [where, spec] of [
        ['beside it', nfs('/exp/ns/ab')],
        ['at the export itself, as charts do for their own mount', nfs('/exp')],
        ['in another export', nfs('/elsewhere/ns/a')],
        ['of another CSI driver', { csi: { driver: 'x', volumeHandle: 'ns/a' } }],
      ] as const) {
        test(`goes where one lies ${where}`, async () => {
          const volume = await rig.provision(rig.storageClass({ pathPattern, onDelete: 'delete' }), annotated('a'));
          stranger(spec);
          await rig.delete(volume);
          assert.deepEqual(rig.entries(), ['ns']);
          assert.ok(!rig.exists('ns/a'));
        });
      }
    });

    test('is kept while one lies inside, and goes as soon as that is gone', async () => {
      const storageClass = rig.storageClass({ pathPattern, onDelete: 'delete' });
      const outer = await rig.provision(storageClass, {}, 'pvc-1');
      const inner = await rig.provision(storageClass, annotated('x'), 'pvc-2');
      rig.write('ns/x/file');
      await assert.rejects(rig.delete(outer), {
        message: 'volume pvc-2 lies in /exp/ns/x, inside /exp/ns of volume pvc-1: it has to be deleted first',
      });
      assert.ok(rig.exists('ns/x/file'));
      await rig.delete(inner);
      assert.deepEqual(rig.woken, ['pvc-1'], 'it is not left to the back-off');
      await rig.delete(outer);
      assert.deepEqual(rig.entries(), []);
    });

    test('goes at once where it lies inside another', async () => {
      const storageClass = rig.storageClass({ pathPattern, onDelete: 'delete' });
      await rig.provision(storageClass, {}, 'pvc-1');
      const inner = await rig.provision(storageClass, annotated('x'), 'pvc-2');
      rig.write('ns/file');
      await rig.delete(inner);
      assert.ok(rig.exists('ns/file') && !rig.exists('ns/x'));
    });

    test('leaves the directory to another with the same one, and the last one takes it along', async () => {
      const storageClass = rig.storageClass({ pathPattern: '${.PVC.namespace}', onDelete: 'delete' });
      const first = await rig.provision(storageClass, { name: 'a' }, 'pvc-1');
      const second = await rig.provision(storageClass, { name: 'b' }, 'pvc-2');
      rig.write('ns/file');
      await rig.delete(first);
      assert.ok(rig.exists('ns/file'));
      assert.equal(rig.log.at(-1)?.level, 'warn');
      await rig.delete(second);
      assert.deepEqual(rig.entries(), []);
    });

    test('is not left by all of them when they go at the same moment', async () => {
      const storageClass = rig.storageClass({ pathPattern: '${.PVC.namespace}', onDelete: 'delete' });
      const volumes = [];
      for (let number = 1; number <= 8; number++) {
        volumes.push(await rig.provision(storageClass, { name: `c${number}` }, `pvc-${number}`));
      }
      rig.write('ns/file');
      await Promise.all(
        volumes.map((volume) => rig.provisioner.delete(volume, { signal: new AbortController().signal })),
      );
      assert.deepEqual(rig.entries(), []);
    });

    test('does not take the directory of one that is made but not yet saved', async () => {
      const storageClass = rig.storageClass({ pathPattern: '${.PVC.namespace}', onDelete: 'delete' });
      const old = await rig.provision(storageClass, { name: 'a' }, 'pvc-1');
      await rig.make(rig.options(storageClass, rig.claim({ name: 'b' }), 'pvc-2'));
      await rig.delete(old);
      assert.ok(rig.exists('ns'));
    });

    test('has none made in its directory while it is being removed', async () => {
      const storageClass = rig.storageClass({ pathPattern, onDelete: 'delete' });
      const volume = await rig.provision(storageClass, annotated('a'), 'pvc-1');
      for (let file = 0; file < 500; file++) rig.write(`ns/a/${file}`);
      const removal = rig.delete(volume);
      while (rig.exists('ns/a/0') && rig.exists('ns/a/499')) await new Promise((resolve) => setImmediate(resolve));
      const below = rig.options(storageClass, rig.claim(annotated('a/b')), 'pvc-2');
      if (rig.exists('ns/a')) {
        await assert.rejects(rig.make(below), /ns\/a is being removed/);
        const beside = rig.options(storageClass, rig.claim(annotated('b')), 'pvc-3');
        await rig.make(beside);
      }
      await removal;
      await rig.make(below);
      assert.ok(rig.exists('ns/a/b'));
    });
  });

  describe('with symbolic links', () => {
    test('in it takes the links along and not what they point to', async () => {
      const volume = await rig.provision(rig.storageClass({ onDelete: 'delete' }));
      symlinkSync(path.join(rig.bait, 'kept'), rig.path('ns-c-pvc-1/file'));
      symlinkSync(rig.bait, rig.path('ns-c-pvc-1/folder'));
      await rig.delete(volume);
      assert.deepEqual(rig.entries(), []);
      rig.checkBait();
    });

    for (const parameters of [{ onDelete: 'delete' }, { archiveOnDelete: 'true' }]) {
      test(`in its place is not touched, with ${JSON.stringify(parameters)}`, async () => {
        const { name } = rig.storageClass(parameters).metadata;
        symlinkSync(rig.bait, rig.path('link'));
        mkdirSync(rig.path('ns'));
        symlinkSync(rig.bait, rig.path('ns/link'));
        for (const nfsPath of ['/exp/link', '/exp/link/kept', '/exp/ns/link']) {
          await assert.rejects(rig.delete(rig.volume(nfsPath, name)), /is a symbolic link$/);
        }
        assert.deepEqual(rig.entries(), ['link', 'ns']);
        rig.checkBait();
      });
    }

    test('is not removed where a file has its place', async () => {
      const { name } = rig.storageClass({ onDelete: 'delete' }).metadata;
      writeFileSync(rig.path('file'), 'x');
      await assert.rejects(rig.delete(rig.volume('/exp/file', name)), /file is not a directory$/);
      assert.ok(rig.exists('file'));
    });
  });
});

for (const sharePath of ['/', '/exp/']) {
  test(`an export at ${sharePath} leaks nothing: what is made there is archived and removed`, async () => {
    await using rig = await SubdirRig.start({ sharePath });
    const archived = await rig.provision(rig.storageClass());
    assert.equal(archived.spec.nfs?.path, path.posix.join(sharePath, 'ns-c-pvc-1'));
    await rig.delete(archived);
    const removed = await rig.provision(rig.storageClass({ onDelete: 'delete' }), { name: 'd' });
    await rig.delete(removed);
    assert.deepEqual(rig.entries(), ['archived-ns-c-pvc-1']);
  });
}

describe('what was made for a claim that is gone', () => {
  let rig: SubdirRig;
  beforeEach(async () => {
    rig = await SubdirRig.start();
  });
  afterEach(() => rig[Symbol.asyncDispose]());

  const context = (asked: string[] = []) => ({
    signal: new AbortController().signal,
    handle: undefined,
    beforeDelete: (handle: string) => {
      asked.push(handle);
      return Promise.resolve();
    },
  });
  const made = async (parameters: Record<string, string>, sketch = {}) => {
    const storageClass = rig.storageClass(parameters);
    const plan = await rig.provisioner.plan(rig.options(storageClass, rig.claim(sketch)));
    await rig.provisioner.fulfil(plan);
    return { plan, storageClass };
  };

  for (const [parameters, want] of [
    [{ onDelete: 'delete' }, []],
    [{}, ['archived-ns-c-pvc-1']],
    [{ onDelete: 'retain' }, ['ns-c-pvc-1']],
  ] as const) {
    test(`is settled as the class says: ${JSON.stringify(parameters)}`, async () => {
      const { plan } = await made(parameters);
      const asked: string[] = [];
      await rig.provisioner.revoke(plan, context(asked));
      assert.deepEqual(rig.entries(), want);
      assert.deepEqual(asked, 'onDelete' in parameters && parameters.onDelete === 'retain' ? [] : ['ns-c-pvc-1']);
      await rig.provisioner.revoke(plan, context());
      assert.deepEqual(rig.entries(), want, 'a repeat changes nothing');
    });
  }

  test('is not touched when a volume has it after all', async () => {
    const { plan } = await made({ onDelete: 'delete' });
    const refusal = new Error('a volume has it');
    const refused = { ...context(), beforeDelete: () => Promise.reject(refusal) };
    await assert.rejects(rig.provisioner.revoke(plan, refused), refusal);
    assert.ok(rig.exists('ns-c-pvc-1'));
  });

  test('is not touched when it was there before the claim', async () => {
    rig.write('ns/data/file', 'of an earlier volume');
    const { plan } = await made({ pathPattern, onDelete: 'delete' }, annotated('data'));
    await rig.provisioner.revoke(plan, context());
    assert.equal(rig.read('ns/data/file'), 'of an earlier volume');
  });

  test('without its class goes when it is empty, and is left to an operator when it is not', async () => {
    const first = await made({});
    rig.deleteClass(first.storageClass.metadata.name);
    await rig.provisioner.revoke(first.plan, context());
    assert.deepEqual(rig.entries(), []);
    const second = await made({});
    rig.write('ns-c-pvc-1/file');
    rig.deleteClass(second.storageClass.metadata.name);
    await assert.rejects(rig.provisioner.revoke(second.plan, context()), {
      state: 'no-change',
      afterUnclear: 'undecidable',
    });
    assert.ok(rig.exists('ns-c-pvc-1/file'));
  });

  test('is held by volumes in it, on whatever server', () => {
    const holds = (nfsPath: string, server: string, ours = false): boolean => {
      const annotations = ours
        ? { 'pv.kubernetes.io/provisioned-by': 'k8s-sigs.io/nfs-subdir-external-provisioner' }
        : {};
      const volume = { metadata: { name: 'v', annotations }, spec: { nfs: { server, path: nfsPath } } };
      return hasStorage(rig.provisioner, volume, 'ns/a');
    };
    assert.ok(holds('/exp/ns/a', 'srv'));
    assert.ok(holds('/exp/ns/a/b/', 'srv'));
    assert.ok(holds('/exp/ns/a', 'renamed', true));
    assert.ok(holds('/exp/ns/a', 'another'), 'which may be another name of this one');
    assert.ok(!holds('/exp/ns', 'srv'));
    assert.ok(!holds('/exp/ns/ab', 'srv'));
    assert.ok(!holds('/elsewhere/ns/a', 'srv'));
    const other = { metadata: { name: 'v' }, spec: { hostPath: { path: '/mnt/ns/a' } } };
    assert.ok(!hasStorage(rig.provisioner, other, 'ns/a'));
  });
});
