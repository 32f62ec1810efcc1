import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  defaultConfig,
  exportBlock,
  exportsIn,
  splitDamaged,
  withServerSettings,
} from '../../../provisioners/nfs-server/ganesha-config.ts';

const base = defaultConfig({ recoveryRoot: '/export', nfsV3: true });
const first = exportBlock({ id: 1, path: '/export/pvc-1', squash: 'no_root_squash' });
const second = exportBlock({ id: 2, path: '/export/pvc-2', squash: 'root_id_squash' });

describe('an export in the configuration of ganesha', () => {
  test('stands there as the original writes it', () => {
    assert.equal(
      first,
      '\nEXPORT\n{\n\tExport_Id = 1;\n\tPath = /export/pvc-1;\n\tPseudo = /export/pvc-1;\n\tAccess_Type = RW;\n' +
        '\tSquash = no_root_squash;\n\tSecType = sys;\n\tFilesystem_id = 1.1;\n\tFSAL {\n\t\tName = VFS;\n\t}\n}\n',
    );
  });

  test('is read with its text, so that taking it out leaves the rest as it was', () => {
    const [root, one, two] = exportsIn(base + first + second);
    assert.partialDeepStrictEqual(root, { id: 0, path: '/' });
    assert.deepEqual(one, { id: 1, path: '/export/pvc-1', squash: 'no_root_squash', text: first });
    assert.deepEqual(two, { id: 2, path: '/export/pvc-2', squash: 'root_id_squash', text: second });
    assert.equal((base + first + second).replace(one.text, ''), base + second);
  });

  test('is found however it is written', () => {
    const [entry] = exportsIn('export{ # Path = /no; }\n export_id=7;path = "/a b"; FSAL { Name = VFS; } }');
    assert.partialDeepStrictEqual(entry, { id: 7, path: '/a b' });
  });

  test('is not taken from a comment', () => {
    assert.deepEqual(exportsIn(`#${first.trim().replaceAll('\n', '\n#')}\n`), []);
  });
});

describe('the configuration of ganesha', () => {
  const settings = { gracePeriodS: 0, deviceBasedFsids: true };

  test('of the original is changed in one line, where only the grace period differs', () => {
    assert.equal(
      withServerSettings(base + first, settings),
      (base + first).replace('Grace_Period = 90;', 'Grace_Period = 0;'),
    );
  });

  test('gets what it lacks after the port of mountd', () => {
    const bare = 'NFS_Core_Param\n{\n\tMNT_Port = 20048;\n}\n\nNFSV4\n{\n\tGrace_Period = 90;\n}\n';
    const text = withServerSettings(bare, { gracePeriodS: 90, deviceBasedFsids: false });
    assert.match(text, /\tMNT_Port = 20048;\n\tfsid_device = false;\n\tNLM_Port = 32803;\n\}/);
    assert.equal(withServerSettings(text, { gracePeriodS: 90, deviceBasedFsids: false }), text, 'once');
  });

  test('keeps the port that an administrator chose', () => {
    const text = base.replace('NLM_Port = 32803;', 'NLM_Port = 4045;');
    assert.equal(withServerSettings(text, { gracePeriodS: 90, deviceBasedFsids: true }), text);
  });

  test('gets a block for the grace period, where it has none', () => {
    const text = withServerSettings('NFS_Core_Param\n{\n\tMNT_Port = 20048;\n}\n', settings);
    assert.match(text, /\nNFSV4\n\{\n\tGrace_Period = 0;\n\}\n$/);
  });

  test('registers with nothing that NFSv4 does not need, where NFSv3 is off', () => {
    const text = defaultConfig({ recoveryRoot: '/export', nfsV3: false });
    assert.match(text, /\tProtocols = 4;\n\tEnable_UDP = false;\n\tEnable_NLM = false;\n\tEnable_RQUOTA = false;\n/);
  });

  test('is whole, as we write it', () => {
    for (const text of ['', base, base + first + second, '# a comment only\n']) {
      assert.equal(splitDamaged(text), undefined, text);
    }
  });

  test('is split after its last whole block, wherever it was cut off', () => {
    const text = base + first + second;
    for (let length = base.length + first.length + 2; length < text.length - 2; length += 1) {
      const damaged = splitDamaged(text.slice(0, length));
      assert.equal((damaged?.whole ?? '').trimEnd(), (base + first).trimEnd(), `${length} characters`);
      assert.equal(damaged!.whole + damaged!.rest, text.slice(0, length));
    }
  });
});
