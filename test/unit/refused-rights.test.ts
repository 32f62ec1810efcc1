import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { refusedRights } from '../support/refused-rights.ts';

describe('refusedRights', () => {
  for (const line of [
    'E1121 10:00:00.000000 1 a.ts:1] "Failed" err="nodes is forbidden: User \\"u\\" cannot list resource \\"nodes\\""',
    'E1121 10:00:00.000000 1 b.ts:2] "Not permitted to use a resource; add the rule to an RBAC role" resource="nodes"',
  ]) {
    test(`finds ${line.slice(line.indexOf(']') + 2)}`, () => {
      assert.deepEqual(refusedRights(`before\n${line}\nafter`), [line]);
    });
  }

  test('does not count a stack trace through a folder named forbidden', () => {
    assert.deepEqual(refusedRights('    at sync (file:///work/forbidden/src/kube/informer.ts:1:2)\n'), []);
  });
});
