import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { refusedRights } from '../support/refused-rights.ts';

describe('refusedRights', () => {
  test('finds the line that asks for a rule', () => {
    const line =
      'E1121 10:00:00.000000 1 b.ts:2] "Not permitted to use a resource; add the rule to an RBAC role" resource="nodes"';
    assert.deepEqual(refusedRights(`before\n${line}\nafter`), [line]);
  });

  for (const line of [
    'W1121 10:00:00.000000 1 b.ts:2] "Not permitted to use a resource, continuing without it" resource="volumesnapshots"',
    'I1121 10:00:00.000000 1 c.ts:3] "Watch ended" err="volumesnapshots is forbidden: User \\"u\\" cannot watch it"',
    '    at sync (file:///home/someone/forbidden/src/kube/cache/informer.ts:1:2)',
  ]) {
    test(`does not count ${line.slice(line.indexOf(']') + 1).trim()}`, () => {
      assert.deepEqual(refusedRights(`${line}\n`), []);
    });
  }
});
