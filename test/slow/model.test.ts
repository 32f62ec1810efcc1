/** The model check with more sequences than `npm test` has time for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Focus, focuses } from '../unit/provision/intent-journal/model/commands.ts';
import { ModelThread } from '../unit/provision/intent-journal/model/model-thread.ts';

const model = new ModelThread();

for (const focus of Object.keys(focuses) as Focus[]) {
  test(`no volume leaks, doubles, changes or is deleted in use, in 80 sequences: ${focus}`, async () => {
    const { failed, report, error } = await model.run({ focus, numRuns: 80, seed: 42 });
    assert.equal(failed, false, `${report}\n${error}`);
  });
}
