import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { ownProcess, takeLong } from '../../scripts/test/own-process.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const files = globSync('test/{unit,integration,sandbox,tools,slow,package}/**/*.ts', { cwd: root });
const alone = new Set([...Object.keys(ownProcess), ...takeLong]);

/** What one test file does to all others in its process, or may suffer from them. */
const whole = {
  'sets an environment variable': /process\.env(\[[^\]]+\])? = /,
  'deletes an environment variable': /delete process\.env/,
  'sets the umask': /process\.umask\(/,
  'changes the folder': /process\.chdir\(/,
  'collects garbage': /[cC]ollectGarbage\(/,
  'measures the heap': /\bheapUsed\b/,
  'awaits at its top level': /^(const .* = )?await /m,
};

/** The test files that have the text, themselves or in a file that they import from their folder. */
function testFilesWith(pattern: RegExp): string[] {
  const having = files.filter((file) => pattern.test(read(file)));
  const isTest = (file: string): boolean => file.endsWith('.test.ts');
  const helpers = having.filter((file) => !isTest(file));
  const importing = files.filter((file) =>
    helpers.some(
      (helper) =>
        path.dirname(helper) === path.dirname(file) && read(file).includes(`from './${path.basename(helper)}'`),
    ),
  );
  return [...new Set([...having, ...importing].filter(isTest))];
}

describe('a test file has a process of its own', () => {
  for (const [what, pattern] of Object.entries(whole)) {
    test(`if it ${what}`, () => {
      const self = path.relative(root, import.meta.filename);
      assert.deepEqual(
        testFilesWith(pattern).filter((file) => !alone.has(file) && file !== self),
        [],
      );
    });
  }

  test('only if it is there', () => {
    const tests = new Set(globSync('test/**/*.test.ts', { cwd: root }));
    assert.deepEqual(
      [...alone].filter((file) => !tests.has(file)),
      [],
    );
  });
});
