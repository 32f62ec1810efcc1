import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import { Random } from '../../scripts/chaos/random.ts';
import { inOrder } from '../../scripts/guards/break-guard.ts';
import { broken, chooseGuards, findGuards, type Guard, typeCheck } from '../../scripts/guards/find-guards.ts';
import { wasExecuted } from '../../scripts/guards/coverage.ts';

function brokenForms(text: string): string[] {
  return findGuards('src/x.ts', text).map((guard) => broken(text, guard));
}

describe('guards', () => {
  const cases = [
    { text: 'if (a) return;', forms: ['if (false) return;'] },
    { text: 'if (a) { b(); throw c; }', forms: ['if (false) { b(); throw c; }'] },
    { text: 'for (;;) if (a) continue;', forms: ['for (;;) if (false) continue;'] },
    { text: 'if (a) b();', forms: [] },
    { text: 'const a = b ?? c;', forms: ['const a = b;'] },
    { text: 'const a = b && c;', forms: ['const a = b;', 'const a = c;'] },
    { text: 'const a = b || c;', forms: ['const a = b;', 'const a = c;'] },
    { text: 'const a = b < c;', forms: ['const a = b <= c;'] },
    { text: 'const a = b >= c;', forms: ['const a = b > c;'] },
    { text: 'function f(a: string = b) {}', forms: ['function f(a: string) {}'] },
    { text: 'const { a = b } = c;', forms: ['const { a } = c;'] },
    { text: 'this.#logger.info({ a: b ?? c }, d);', forms: [] },
    { text: 'if (a && b) logger.info(c);', forms: [] },
  ];
  for (const { text, forms } of cases) {
    test(`${text} is broken in ${forms.length} ways`, () => assert.deepEqual(brokenForms(text), forms));
  }

  test('are found with their line, and with the place that a test must reach', () => {
    const text = 'f();\nif (a) return 1;\n';
    const [guard, ...others] = findGuards('src/x.ts', text);
    assert.deepEqual(others, []);
    assert.equal(guard?.line, 2);
    assert.equal(text.slice(guard.reachedAt), 'return 1;\n');
  });

  test('that the compiler would report are recognized', () => {
    const isValid = typeCheck(path.join(import.meta.dirname, '../..'));
    assert.equal(isValid('src/base/errno.ts', 'export const a: number = 1;'), true);
    assert.equal(isValid('src/base/errno.ts', 'export const a: number = undefined;'), false);
  });
});

describe('the choice of guards', () => {
  const guards = ['a/1', 'a/2', 'a/3', 'b/1', 'c/1'].map((name) => ({ file: `src/${name}.ts` }) as Guard);
  const choose = (seed: string, count: number, isAccepted = (_guard: Guard): boolean => true): string[] =>
    chooseGuards(guards, { count, random: new Random(seed), isAccepted }).map(({ file }) => file);

  test('is spread over the folders', () => {
    for (const seed of ['1', '2', '3', '4']) {
      assert.deepEqual(new Set(choose(seed, 3).map((file) => file[4])), new Set(['a', 'b', 'c']));
    }
  });

  test('is repeated by the seed', () => {
    assert.deepEqual(choose('1', 5), choose('1', 5));
    assert.ok(new Set(['1', '2', '3', '4'].map((seed) => choose(seed, 5).join())).size > 1);
  });

  test('goes on with the next one of the folder where one is not accepted, and ends when there are no more', () => {
    assert.deepEqual(choose('1', 5, ({ file }) => !file.endsWith('1.ts')).toSorted(), ['src/a/2.ts', 'src/a/3.ts']);
  });
});

test('code counts as executed from the beginning of a piece to its end', () => {
  const executed = { 'src/x.ts': [2, 4, 6, 8] };
  const offsets = [1, 2, 3, 4, 5, 6, 7, 8].filter((at) => wasExecuted(executed, 'src/x.ts', at));
  assert.deepEqual(offsets, [2, 3, 6, 7]);
  assert.equal(wasExecuted(executed, 'src/y.ts', 2), false);
});

test('tests run in this order: unit tests, those of the same folder, the fastest', () => {
  const tests = ['integration/c/x', 'unit/a', 'unit/c/z', 'unit/c/y', 'unit/c/x'].map((name) => `test/${name}.test.ts`);
  const known = (name: string) => ({ outcome: 'passed' as const, ms: name.includes('z') ? 1 : 2, executed: {} });
  assert.deepEqual(
    inOrder('src/c/x.ts', tests, { known }),
    ['unit/c/x', 'unit/c/z', 'unit/c/y', 'unit/a', 'integration/c/x'].map((name) => `test/${name}.test.ts`),
  );
});
