import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  defaultConfig,
  exportBlock,
  exportsIn,
  repaired,
  withServerSettings,
} from '../../../provisioners/nfs-server/ganesha-config.ts';

const defaults = { recoveryRoot: '/export', nfsV3: true };
const base = defaultConfig(defaults);
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

  test('is left as it is, where it is whole', () => {
    for (const text of [base, base + first + second, 'EXPORT # a comment\n{\n}\n%include "other.conf"\n']) {
      assert.equal(repaired(text, defaults), undefined, text);
    }
  });

  test('is that of a first start, where no block is left', () => {
    for (const text of ['', '# a comment only\n', 'EXPORT {', '\0\0\0\0']) assert.equal(repaired(text, defaults), base);
  });

  test('keeps its whole blocks, wherever it was cut off', () => {
    const text = base + first + second;
    for (let length = base.length + first.length + 2; length < text.length - 2; length += 1) {
      const whole = repaired(text.slice(0, length), defaults);
      assert.equal(whole?.trimEnd(), (base + first).trimEnd(), `${length} characters`);
    }
  });

  for (const { title, damage } of [
    { title: 'a stray quote', damage: (block: string) => block.replace('Path = ', 'Path = "') },
    { title: 'a missing end', damage: (block: string) => block.replace(/\}\n$/, '') },
    { title: 'a missing beginning', damage: (block: string) => block.replace('EXPORT\n{', 'EXPORT') },
    { title: 'zeros', damage: (block: string) => '\0'.repeat(block.length) },
    { title: 'an end too many', damage: (block: string) => block.replace('FSAL {', 'FSAL {}') },
    { title: 'text outside of blocks', damage: () => 'Export_Id = 2;\n' },
  ]) {
    test(`keeps what follows a block that is damaged by ${title}`, () => {
      const third = exportBlock({ id: 3, path: '/export/pvc-3', squash: 'no_root_squash' });
      const whole = repaired(base + first + damage(second) + third, defaults) ?? '';
      assert.deepEqual(
        exportsIn(whole)
          .map(({ id }) => id)
          .filter((id) => id !== 2),
        [0, 1, 3],
      );
      assert.equal(repaired(whole, defaults), undefined, whole);
      assert.ok(whole.includes(first.trim()) && whole.includes(third.trim()));
    });
  }

  test('gets the blocks of a first start that it cannot do without, where they are damaged', () => {
    const text = base.replace('Path = /;', 'Path = "/;').replace('MNT_Port =', "MNT_Port = '") + first;
    const whole = repaired(text, defaults) ?? '';
    assert.match(whole, /NFS_Core_Param\n\{\n\tMNT_Port = 20048;/);
    assert.deepEqual(
      exportsIn(whole).map(({ id }) => id),
      [1, 0],
    );
    assert.equal(whole.match(/NFSV4/g)?.length, 1);
  });
});
