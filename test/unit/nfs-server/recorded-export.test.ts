import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PersistentVolume } from '../../../src/index.ts';
import { exportBlock } from '../../../provisioners/nfs-server/ganesha-config.ts';
import { kernelFormat } from '../../../provisioners/nfs-server/kernel-exports.ts';
import { recordedExport } from '../../../provisioners/nfs-server/recorded-export.ts';
import { VolumeDirectories } from '../../../provisioners/nfs-server/volume-directory.ts';

const directories = new VolumeDirectories('/export');
const made = { id: 7, path: '/export/pvc-a', squash: 'root_id_squash' } as const;
const volume = (annotations: Record<string, string> = {}, path: string = made.path): PersistentVolume => ({
  metadata: { name: 'pvc-a', annotations: { Export_Id: '7', EXPORT_block: exportBlock(made), ...annotations } },
  spec: { nfs: { server: '10.0.0.1', path } },
});

describe('the export that a PersistentVolume names', () => {
  test('is the one that was made for it, by ganesha or by the kernel', () => {
    assert.deepEqual(recordedExport(volume(), directories), made);
    for (const squash of ['no_root_squash', 'root_id_squash'] as const) {
      const line = kernelFormat('10.0.0.0/8').write({ ...made, squash });
      assert.deepEqual(recordedExport(volume({ EXPORT_block: line }), directories), { ...made, squash });
    }
  });

  test('takes nothing but the squash from the text of the block', () => {
    const evil =
      'EXPORT { Export_Id = 0; Path = /; Pseudo = /etc; Protocols = 3; Squash = no_root_squash; FSAL { Name = X; } } %include "/x"';
    const found = recordedExport(volume({ EXPORT_block: evil }), directories);
    assert.deepEqual(found, { ...made, squash: 'no_root_squash' });
  });

  for (const { title, annotations = {}, path, message } of [
    { title: 'an id that is that of the pseudo root', annotations: { Export_Id: '0' }, message: /Export_Id "0"/ },
    { title: 'an id of its file system', annotations: { Export_Id: '152' }, message: /Export_Id "152"/ },
    { title: 'an id that is too large', annotations: { Export_Id: '65536' }, message: /Export_Id "65536"/ },
    { title: 'an id with more behind it', annotations: { Export_Id: '7; }' }, message: /a number from 1 to 65535/ },
    { title: 'no squash', annotations: { EXPORT_block: '' }, message: /EXPORT_block ""/ },
    { title: 'an unknown squash', annotations: { EXPORT_block: 'Squash = all;' }, message: /must contain/ },
    {
      title: 'the squash of an object',
      annotations: { EXPORT_block: 'Squash = constructor;' },
      message: /must contain/,
    },
    {
      title: 'two squashes',
      annotations: { EXPORT_block: 'Squash = no_root_squash; Squash = root_id_squash;' },
      message: /must contain/,
    },
    { title: 'a path beside the export directory', path: '/etc', message: /spec.nfs.path "\/etc" is not/ },
    { title: 'the export directory itself', path: '/export', message: /spec.nfs.path/ },
    { title: 'a path below a volume', path: '/export/pvc-a/pvc-b', message: /spec.nfs.path/ },
    { title: 'a path that leads out', path: '/export/pvc-a/..', message: /spec.nfs.path/ },
    { title: 'a path with more than one name', path: '/export//pvc-a', message: /spec.nfs.path/ },
    { title: 'a path that is no volume', path: '/export/vfs.conf', message: /spec.nfs.path/ },
    { title: 'a path with text for the configuration', path: '/export/pvc-a;\n', message: /spec.nfs.path/ },
  ] as { title: string; annotations?: Record<string, string>; path?: string; message: RegExp }[]) {
    test(`cannot have ${title}`, () => {
      const found = recordedExport(volume(annotations, path), directories);
      assert.match('problem' in found ? found.problem : 'an export', message);
    });
  }

  test('is none where the volume has none', () => {
    const found = recordedExport({ metadata: { name: 'pvc-a' }, spec: {} }, directories);
    assert.match('problem' in found ? found.problem : 'an export', /annotation Export_Id missing/);
  });
});
