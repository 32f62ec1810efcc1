import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../src/index.ts';
import { recordedQuota } from '../../../provisioners/nfs-server/recorded-quota.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';

const directories = new VolumeDirectories('/export');
const volume = (
  annotations: Record<string, string>,
  { path = '/export/pvc-a', storage = '1Mi' }: { path?: string | undefined; storage?: string | undefined } = {},
): PersistentVolume => ({
  metadata: { name: 'pvc-a', annotations },
  spec: { nfs: { server: '10.0.0.1', path }, capacity: { storage } },
});

describe('the quota that a PersistentVolume names', () => {
  test('has its id, and its capacity as the size', () => {
    const found = recordedQuota(volume({ Project_Id: '7', Project_block: '\n7:/export/pvc-a:1048576\n' }), directories);
    assert.deepEqual(found, { id: 7, directory: '/export/pvc-a', bytes: 1_048_576n });
  });

  test('takes nothing from the text of the block', () => {
    const evil = { Project_Id: '7', Project_block: '\n9:/etc:99999999999\n' };
    assert.deepEqual(recordedQuota(volume(evil), directories), {
      id: 7,
      directory: '/export/pvc-a',
      bytes: 1_048_576n,
    });
  });

  for (const annotations of [{ Project_Id: '0', Project_block: '' }, {}]) {
    test(`is none with the annotations ${JSON.stringify(annotations)}`, () =>
      assert.equal(recordedQuota(volume(annotations), directories), undefined));
  }

  for (const { title, id = '7', path, storage, message } of [
    { title: 'an id with more behind it', id: '7 -x', message: /^annotation Project_Id "7 -x": it must be a number/ },
    { title: 'a negative id', id: '-7', message: /Project_Id "-7"/ },
    { title: 'an id that is too large', id: '2147483648', message: /Project_Id "2147483648": .* up to 2147483647/ },
    { title: 'a path that leads out', path: '/export/pvc-a/..', message: /spec.nfs.path .* directly below \/export/ },
    { title: 'a path with a command', path: '/export/pvc-a 1;x', message: /spec.nfs.path/ },
    { title: 'a size of 0, which is no limit', storage: '0', message: /spec.capacity.storage is not a size/ },
    { title: 'a size that is none', storage: '1Mi 7', message: /spec.capacity.storage is not a size/ },
  ] as { title: string; id?: string; path?: string; storage?: string; message: RegExp }[]) {
    test(`cannot have ${title}`, () => {
      const found = recordedQuota(volume({ Project_Id: id }, { path, storage }), directories);
      assert.match(found !== undefined && 'problem' in found ? found.problem : 'a quota', message);
    });
  }
});
