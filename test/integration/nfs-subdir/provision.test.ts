import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { ProvisionError } from '../../../src/index.ts';
import { FreezableFolder } from '../../support/frozen-folder.ts';
import { SubdirRig } from './rig.ts';

const storagePath = 'nfs.io/storage-path';
const byAnnotation = { pathPattern: `\${.PVC.namespace}/\${.PVC.annotations.${storagePath}}` };
const onlyAnnotation = { pathPattern: `\${.PVC.annotations.${storagePath}}` };
const annotated = (value: string) => ({ annotations: { [storagePath]: value } });
const finished = (message: string | RegExp) => (error: unknown) => {
  assert.ok(error instanceof ProvisionError, String(error));
  assert.equal(error.state, 'finished');
  if (typeof message === 'string') assert.equal(error.message, message);
  else assert.match(error.message, message);
  return true;
};

describe('a volume of nfs-subdir', () => {
  let rig: SubdirRig;
  let umask: number;
  beforeEach(async () => {
    umask = process.umask(0o022);
    rig = await SubdirRig.start();
  });
  afterEach(async () => {
    process.umask(umask);
    await rig[Symbol.asyncDispose]();
  });

  test('is a directory for everybody, named for namespace, claim and volume', async () => {
    const { spec } = await rig.provision(rig.storageClass());
    assert.equal(rig.mode('ns-c-pvc-1'), 0o777);
    assert.deepEqual(spec.nfs, { server: 'srv', path: '/exp/ns-c-pvc-1', readOnly: false });
    assert.deepEqual(spec.capacity, { storage: '1Gi' });
    assert.deepEqual(spec.accessModes, ['ReadWriteMany']);
    assert.equal(spec.persistentVolumeReclaimPolicy, 'Delete');
    assert.ok(!('mountOptions' in spec) && !('nodeAffinity' in spec));
  });

  test('has the mount options of the class in their order, and its reclaim policy', async () => {
    const storageClass = rig.storageClass({}, { mountOptions: ['vers=4.1', 'nolock'], reclaimPolicy: 'Retain' });
    const { spec } = await rig.provision(storageClass);
    assert.deepEqual(spec.mountOptions, ['vers=4.1', 'nolock']);
    assert.equal(spec.persistentVolumeReclaimPolicy, 'Retain');
  });

  test('is the same one at a repeat, with what is in it', async () => {
    const storageClass = rig.storageClass();
    const claim = rig.claim();
    const first = await rig.make(rig.options(storageClass, claim));
    rig.write('ns-c-pvc-1/file', 'kept');
    assert.deepEqual(await rig.make(rig.options(storageClass, claim)), first);
    assert.equal(rig.read('ns-c-pvc-1/file'), 'kept');
    assert.deepEqual(rig.entries(), ['ns-c-pvc-1']);
  });

  test('survives the journal: its plan is plain data from which it is made, also when class and claim are gone', async () => {
    const plan = await rig.provisioner.plan(rig.options(rig.storageClass(byAnnotation), rig.claim(annotated('a/b'))));
    const read = JSON.parse(JSON.stringify(plan)) as typeof plan;
    assert.deepEqual(read, plan);
    assert.deepEqual(rig.entries(), [], 'a plan makes nothing');
    assert.equal((await rig.provisioner.fulfil(read)).spec.nfs?.path, '/exp/ns/a/b');
    assert.ok(rig.exists('ns/a/b'));
  });

  test('is not made from a record that somebody edited', async () => {
    const plan = await rig.provisioner.plan(rig.options(rig.storageClass(), rig.claim()));
    for (const edit of [
      { path: ['..', 'bait'] },
      { path: ['a/b'] },
      { path: [] },
      { path: 'a' },
      { volume: {} },
      { className: 1 },
    ]) {
      await assert.rejects(rig.provisioner.fulfil({ ...plan, ...edit }), (error: ProvisionError) => {
        assert.equal(error.afterUnclear, 'undecidable', JSON.stringify(edit));
        return true;
      });
    }
    assert.deepEqual(rig.entries(), []);
  });

  describe('is refused', () => {
    const refused: [string, object, string | RegExp][] = [
      ['for a claim with a selector, even an empty one', { selector: {} }, 'claim Selector is not supported'],
      [
        'for a claim with a data source',
        { dataSource: { kind: 'VolumeSnapshot', name: 's' } },
        /data source, VolumeSnapshot "s", is not supported/,
      ],
      [
        'for a claim with a data source reference',
        { dataSourceRef: { kind: 'Populator', name: 'p' } },
        /data source, Populator "p", is not/,
      ],
    ];
    for (const [why, spec, message] of refused) {
      test(why, async () => {
        await assert.rejects(rig.provision(rig.storageClass(), { spec }), finished(message));
        assert.deepEqual(rig.entries(), []);
      });
    }

    test('for names that are together too long for a directory, and not for the longest that are not', async () => {
      const volumeName = `pvc-${'0'.repeat(36)}`;
      const longest = { namespace: 'n'.repeat(63), name: 'c'.repeat(150) };
      const { spec } = await rig.provision(rig.storageClass(), longest, volumeName);
      assert.equal(Buffer.byteLength(spec.nfs?.path ?? ''), '/exp/'.length + 255);
      const longer = { ...longest, name: 'c'.repeat(151) };
      const why = /^the names of the namespace and of the claim are too long together: .* has 256 bytes, at most 255/;
      await assert.rejects(rig.provision(rig.storageClass(), longer, volumeName), finished(why));
      assert.equal(rig.entries().length, 1);
    });

    test('where a file has its name', async () => {
      writeFileSync(rig.path('ns-c-pvc-1'), 'a file');
      const why = /^unable to create directory to provision new pv: .*ns-c-pvc-1/;
      await assert.rejects(rig.provision(rig.storageClass()), finished(why));
      assert.equal(rig.read('ns-c-pvc-1'), 'a file');
    });
  });

  describe('with a pathPattern', () => {
    const paths: [string, string, object, string][] = [
      ['of names', '${.PVC.namespace}-${.PVC.name}', {}, 'ns-c'],
      ['that comes to nothing', '${.PVC.labels.app}', {}, 'ns-c-pvc-1'],
      ['of a label', '${.PVC.labels.app}', { labels: { app: 'web' } }, 'web'],
      ['with a token that does not exist', '${.PVC.uid}x', {}, 'x'],
      ['without a dot, which is text', '${PVC.name}', {}, '${PVC.name}'],
      ['with slashes around it', '//${.PVC.name}/./', {}, 'c'],
      ['whose annotation looks like a replacement', onlyAnnotation.pathPattern, annotated('$&$1'), '$&$1'],
      [
        'whose annotation looks like a token',
        `\${.PVC.annotations.${storagePath}}-\${.PVC.name}`,
        annotated('${.PVC.name}'),
        '${.PVC.name}-c',
      ],
      ['whose annotation is missing', byAnnotation.pathPattern, {}, 'ns'],
    ];
    for (const [what, pathPattern, sketch, want] of paths) {
      test(`${what} lies at ${want}`, async () => {
        const { spec } = await rig.provision(rig.storageClass({ pathPattern }), sketch);
        assert.equal(spec.nfs?.path, `/exp/${want}`);
        assert.equal(rig.mode(want), 0o777);
        assert.deepEqual(rig.entries(), [want]);
      });
    }

    test('of several levels is open at the last one, and has ordinary directories above', async () => {
      const { spec } = await rig.provision(rig.storageClass(byAnnotation), annotated('a/b'));
      assert.equal(spec.nfs?.path, '/exp/ns/a/b');
      assert.deepEqual([rig.mode('ns'), rig.mode('ns', 'a'), rig.mode('ns', 'a', 'b')], [0o755, 0o755, 0o777]);
    });

    const hostile: [string, string, RegExp][] = [
      [
        'leaves the export',
        '../../etc',
        /StorageClass "class-\d+": pathPattern ".*" gives no path for this claim: "ns\/\.\.\/\.\.\/etc" has the component "\.\."/,
      ],
      ['leaves it and comes back', 'a/../b', /has the component "\.\."/],
      ['has a NUL', 'a\0b', /has a control character/],
      ['has a line break', 'a\nb', /has a control character/],
      ['has a name of 256 bytes', 'x'.repeat(256), /has 256 bytes, at most 255/],
      ['is longer than a path may be', 'abc/'.repeat(1100), /too long/],
    ];
    for (const [what, value, why] of hostile) {
      test(`is refused when its annotation ${what}`, async () => {
        await assert.rejects(rig.provision(rig.storageClass(byAnnotation), annotated(value)), finished(why));
        assert.deepEqual(rig.entries(), []);
      });
    }

    for (const value of ['/', './', '.', '//./']) {
      test(`is refused when it gives the export itself: ${value}`, async () => {
        const mode = rig.mode();
        await assert.rejects(
          rig.provision(rig.storageClass(onlyAnnotation), annotated(value)),
          finished(/is the folder itself/),
        );
        assert.equal(rig.mode(), mode);
      });
    }

    for (const [where, link, value] of [
      ['in the export', 'ns', 'x'],
      ['below a directory', 'ns/a', 'a/b'],
      ['at its end', 'ns/a/b', 'a/b'],
    ] as const) {
      test(`is refused where a symbolic link lies ${where}`, async () => {
        const above = link.split('/').slice(0, -1);
        mkdirSync(rig.path(...above), { recursive: true });
        symlinkSync(rig.bait, rig.path(link));
        const why = /^unable to create directory to provision new pv: .* (is a symbolic link|ENOTDIR)|ENOTDIR|ELOOP/;
        await assert.rejects(rig.provision(rig.storageClass(byAnnotation), annotated(value)), finished(why));
        rig.checkBait();
      });
    }
  });
});

const full = FreezableFolder.mount();

test(
  'on a full file system leaves none of the directories that were made for it',
  { skip: full === undefined && 'needs root and loop devices' },
  async () => {
    using folder = full!;
    await using rig = await SubdirRig.start({ mount: folder.path });
    mkdirSync(rig.path('there'));
    mkdirSync(rig.path('fill'));
    let files = 0;
    try {
      for (; ; files++) writeFileSync(rig.path(`fill/${files}`), '');
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
    }
    for (let free = 1; free <= 2; free++) {
      rmSync(rig.path(`fill/${files - free}`));
      const claim = rig.options(rig.storageClass({ pathPattern: 'there/a/b/c' }), rig.claim());
      await assert.rejects(rig.make(claim), finished(/^unable to create directory.*ENOSPC/));
      assert.deepEqual(rig.entries(), ['fill', 'there']);
      assert.ok(!rig.exists('there/a'));
    }
    rmSync(rig.path(`fill/${files - 3}`));
    await rig.provision(rig.storageClass({ pathPattern: 'there/a/b/c' }));
    assert.ok(rig.exists('there/a/b/c'));
  },
);
