import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { ESLint, type Linter } from 'eslint';
import { floors, shippedProvisioners } from '../../eslint.config.js';

const root = path.join(import.meta.dirname, '../..');

describe('the border rule between the floors', () => {
  let rules: (folder: string) => Promise<Linter.Config>;
  before(() => {
    const eslint = new ESLint({ cwd: root });
    rules = async (folder) => {
      const config = (await eslint.calculateConfigForFile(path.join(root, folder, 'probe.ts'))) as Linter.Config;
      const { 'no-restricted-imports': borders, 'no-restricted-syntax': laterBorders } = config.rules ?? {};
      return { rules: { 'no-restricted-imports': borders ?? 'off', 'no-restricted-syntax': laterBorders ?? 'off' } };
    };
  });

  /** Only the border rules, without types: the probe files do not exist. A module that is loaded later is refused like one that is imported. */
  const complaintsIn = async (folder: string, statement: string): Promise<string[]> => {
    const { Linter: Probe } = await import('eslint');
    const later = statement
      .replace(/^import (.*) from (.*?);/, 'const $1 = await import($2);')
      .replace('const * as', 'const');
    assert.notEqual(later, statement);
    const [now, then] = await Promise.all(
      [statement, later].map(async (text) =>
        new Probe()
          .verify(text, [await rules(folder)], { filename: `${folder}/probe.js` })
          .map(({ message }) => message.replace(/^'[^']*' import is restricted from being used by a pattern\. /, '')),
      ),
    );
    assert.deepEqual(then, now, later);
    return now ?? [];
  };
  const complaints = (floor: string, statement: string): Promise<string[]> => complaintsIn(`src/${floor}`, statement);

  for (const [floor, above] of Object.entries(floors)) {
    test(`src/${floor} may not import from ${above.join(', ')}`, async () => {
      for (const other of above) {
        const [complaint] = await complaints(floor, `import { thing } from '../${other}/thing.ts'; thing();`);
        assert.match(complaint ?? 'nothing', /imports point downwards only/, `${floor} → ${other}`);
      }
    });
  }

  test('lets imports down through', async () => {
    assert.deepEqual(await complaints('provision', `import { thing } from '../kube/thing.ts'; thing();`), []);
    assert.deepEqual(await complaints('csi', `import { thing } from '../provision/thing.ts'; thing();`), []);
  });

  test('keeps gRPC out of the controller', async () => {
    assert.equal((await complaints('provision', `import { Client } from '@grpc/grpc-js'; Client();`)).length, 1);
  });

  test('a module that is loaded later is named by a literal, so that it can be checked', async () => {
    const { Linter: Probe } = await import('eslint');
    for (const folder of [
      ...Object.keys(floors).map((floor) => `src/${floor}`),
      'sandbox/api',
      'provisioners/folders',
    ]) {
      for (const name of ['name', '`../${name}/thing.ts`', '`../cli/thing.ts`']) {
        const text = `const name = ''; await import(${name});`;
        const [found] = new Probe().verify(text, [await rules(folder)], { filename: `${folder}/probe.js` });
        assert.match(found?.message ?? 'nothing', /Name the module as a literal/, `${folder}: ${name}`);
      }
    }
  });

  test('the sandbox shares src/base, and nothing more of src', async () => {
    const folders = (await readdir(path.join(root, 'src'))).filter((name) => name !== 'base');
    for (const name of folders) {
      const [complaint] = await complaintsIn(
        'sandbox/api',
        `import { thing } from '../../src/${name}/thing.ts'; thing();`,
      );
      assert.match(complaint ?? 'nothing', /shares only src\/base/, name);
    }
    assert.deepEqual(await complaintsIn('sandbox/api', `import { a } from '../../src/base/clock.ts'; a();`), []);
  });

  test('nothing of src imports the sandbox, in no folder and beside them', async () => {
    for (const folder of ['src', ...Object.keys(floors).map((floor) => `src/${floor}`)]) {
      const [complaint] = await complaintsIn(folder, `import { thing } from '../../sandbox/api/thing.ts'; thing();`);
      assert.ok(complaint, folder);
    }
  });

  test('a program of provisioners knows its own files and the public surface, and nothing else', async () => {
    const own = 'provisioners/folders';
    const outside = [
      ...['../../src/index.ts', '../../src/provision/provisioner.ts', '../../sandbox/sandbox.ts'],
      ...['../../test/support/eventually.ts', '../nfs/main.ts', 'csi-provisioner/dist/lib/kube/transport.js'],
    ];
    for (const [folder, up] of [
      [own, ''],
      [`${own}/parts`, '../'],
    ] as const) {
      for (const name of outside) {
        const from = name.startsWith('.') ? up + name : name;
        const [complaint] = await complaintsIn(folder, `import { thing } from '${from}'; thing();`);
        assert.match(
          complaint ?? 'nothing',
          /the public surface, csi-provisioner and what it exports, alone/,
          `${folder} → ${from}`,
        );
      }
      for (const name of [
        'csi-provisioner',
        'csi-provisioner/testing',
        'node:path',
        './thing.ts',
        `${up || './'}thing.ts`,
      ]) {
        assert.deepEqual(await complaintsIn(folder, `import { thing } from '${name}'; thing();`), [], name);
      }
    }
  });

  test('a shipped provisioner knows its own files and the file of the public surface, and nothing else', async () => {
    for (const name of shippedProvisioners) {
      for (const [folder, up] of [
        [`provisioners/${name}`, ''],
        [`provisioners/${name}/parts`, '../'],
      ] as const) {
        const outside = [
          '../../src/provision/provisioner.ts',
          '../../src/index.tsx',
          '../../test/a.ts',
          '../other/main.ts',
        ];
        for (const from of [...outside.map((file) => up + file), 'csi-provisioner']) {
          const [complaint] = await complaintsIn(folder, `import { thing } from '${from}'; thing();`);
          assert.match(
            complaint ?? 'nothing',
            /public surface, src\/index\.ts and src\/kube\.ts, alone/,
            `${folder} → ${from}`,
          );
        }
        for (const from of [
          `${up}../../src/index.ts`,
          `${up}../../src/kube.ts`,
          'node:path',
          './thing.ts',
          `${up || './'}thing.ts`,
        ]) {
          assert.deepEqual(await complaintsIn(folder, `import { thing } from '${from}'; thing();`), [], from);
        }
      }
    }
  });

  test('knows the folders of src and no other', async () => {
    const entries = await readdir(path.join(root, 'src'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    assert.deepEqual(Object.keys(floors).sort(), folders.sort());
  });

  test('is not switched off anywhere', async () => {
    for (const room of ['src', 'sandbox', 'provisioners']) {
      const files = (await readdir(path.join(root, room), { recursive: true })).filter((name) => name.endsWith('.ts'));
      for (const file of files) {
        const text = await readFile(path.join(root, room, file), 'utf8');
        assert.doesNotMatch(text, /eslint-disable[^\n]*no-restricted-(imports|syntax)/, `${room}/${file}`);
      }
    }
  });
});
