import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { ESLint, type Linter } from 'eslint';
import { floors } from '../../eslint.config.js';

const root = path.join(import.meta.dirname, '../..');

describe('the border rule between the floors', () => {
  let rules: (floor: string) => Promise<Linter.Config>;
  before(() => {
    const eslint = new ESLint({ cwd: root });
    rules = async (floor) => {
      const config = (await eslint.calculateConfigForFile(path.join(root, 'src', floor, 'probe.ts'))) as Linter.Config;
      const { 'no-restricted-imports': borders } = config.rules ?? {};
      return { rules: { 'no-restricted-imports': borders ?? 'off' } };
    };
  });

  /** Only the border rule, without types: the probe files do not exist. */
  const complaints = async (floor: string, statement: string): Promise<string[]> => {
    const { Linter: Probe } = await import('eslint');
    return new Probe()
      .verify(statement, [await rules(floor)], { filename: `src/${floor}/probe.js` })
      .map(({ message }) => message);
  };

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

  test('knows the folders of src and no other', async () => {
    const entries = await readdir(path.join(root, 'src'), { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    assert.deepEqual(Object.keys(floors).sort(), folders.sort());
  });

  test('is not switched off anywhere in src', async () => {
    const files = (await readdir(path.join(root, 'src'), { recursive: true })).filter((name) => name.endsWith('.ts'));
    for (const file of files) {
      const text = await readFile(path.join(root, 'src', file), 'utf8');
      assert.doesNotMatch(text, /eslint-disable[^\n]*no-restricted-imports/, file);
    }
  });
});
