/** `npm run guards` on a small checkout of its own. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { breakGuard, type Verdict } from '../../scripts/guards/break-guard.ts';
import { findGuards } from '../../scripts/guards/find-guards.ts';
import { MeasuredTests } from '../../scripts/guards/measured-tests.ts';
import { runTestFile } from '../../scripts/guards/run-test-file.ts';
import { textOf } from '../../scripts/guards/report.ts';
import type { WorkingCopy } from '../../scripts/guards/working-copy.ts';

const source = `export function f(a: number): string {
  if (a === 1) return 'one';
  if (a === 2) return 'two';
  if (a === 3) return 'three';
  return 'many';
}
`;

/** One and two are executed, in a process that the test starts; only one is asserted. */
const program = `import { f } from './f.ts';\nconsole.log(f(1));\nf(2);\n`;
const testFile = `import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
test('one', () => assert.equal(String(execFileSync(process.execPath, ['src/program.ts'])).trim(), 'one'));
`;
const files = {
  'src/f.ts': source,
  'src/program.ts': program,
  'package.json': '{ "type": "module" }',
  'test/support/file-limits.ts': '',
  'test/unit/f.test.ts': testFile,
  'test/unit/failing.test.ts': `import '../../src/program.ts';\nthrow new Error('always');\n`,
};

/** A checkout with these files, for as long as `use` needs it. */
async function inCheckout<T>(use: (copy: WorkingCopy) => Promise<T>): Promise<T> {
  const root = await mkdtemp(path.join(tmpdir(), 'g-'));
  try {
    const copy = { folder: path.join(root, 'copy'), temporary: path.join(root, 'tmp'), programs: path.join(root, 'p') };
    for (const [name, text] of Object.entries(files)) {
      await mkdir(path.join(copy.folder, path.dirname(name)), { recursive: true });
      await writeFile(path.join(copy.folder, name), text);
    }
    return await use(copy);
  } finally {
    await rm(root, { recursive: true });
  }
}

function measuredTests(copy: WorkingCopy): MeasuredTests {
  return new MeasuredTests({ root: copy.folder, sources: '', limitMs: 600_000 });
}

function verdictsOfAll(): Promise<{ verdicts: Verdict[]; left: string }> {
  return inCheckout(async (copy) => {
    const tests = ['test/unit/failing.test.ts', 'test/unit/f.test.ts'];
    const { signal } = new AbortController();
    const options = { copy, tests, measured: measuredTests(copy), limitMs: 600_000, signal };
    const found: Verdict[] = [];
    for (const guard of findGuards('src/f.ts', source)) found.push(await breakGuard(guard, options));
    return { verdicts: found, left: await readFile(path.join(copy.folder, 'src/f.ts'), 'utf8') };
  });
}

describe('a broken guard', () => {
  let one: Verdict | undefined;
  let two: Verdict | undefined;
  let three: Verdict | undefined;
  let left: string;

  before(async () => {
    ({
      verdicts: [one, two, three],
      left,
    } = await verdictsOfAll());
  });

  test('is caught by a test that fails, also in a process that the test starts', () => {
    assert.equal(one?.outcome, 'caught');
    assert.deepEqual(one.by, { test: 'test/unit/f.test.ts', how: 'failed' });
  });

  test('survives where the tests that reach it pass', () => {
    assert.equal(two?.outcome, 'survived');
    assert.equal(two.passed, 1);
    assert.match(textOf(two, source), /before: if \(a === 2\) return 'two';\n +after: +if \(false\) return 'two';\n/);
  });

  test('survives where no test reaches it, as one that fails on unchanged sources does not count', () => {
    assert.equal(three?.outcome, 'survived');
    assert.equal(three.passed, 0);
  });

  test('is restored afterwards', () => assert.equal(left, source));
});

test('a test file that two jobs ask for at the same time is measured once', () =>
  inCheckout(async (copy) => {
    const measured = measuredTests(copy);
    const measure = () => measured.measure('test/unit/f.test.ts', copy, new AbortController().signal);
    const [one, other] = await Promise.all([measure(), measure()]);
    assert.equal(one.outcome, 'passed');
    assert.equal(other, one);
  }));

test('a test file that hangs leaves no mount behind', async (t) => {
  const mounting = `import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
const folder = process.env.TMPDIR + '/mount';
mkdirSync(folder);
execFileSync('mount', ['-t', 'tmpfs', 'none', folder]);
setInterval(() => {}, 1000);
`;
  await inCheckout(async (copy) => {
    await writeFile(path.join(copy.folder, 'test/unit/mounting.test.ts'), mounting);
    const options = { limitMs: 3000, signal: new AbortController().signal };
    const { outcome } = await runTestFile(copy, 'test/unit/mounting.test.ts', options);
    if (outcome === 'failed') {
      t.skip('nothing may be mounted here');
      return;
    }
    assert.equal(outcome, 'timeout');
    assert.ok(!(await readFile('/proc/self/mounts', 'utf8')).includes(copy.temporary));
    await assert.rejects(readFile(copy.temporary), { code: 'ENOENT' });
  });
});
