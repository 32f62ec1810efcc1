/**
 * The model check is effective: without a guard it finds a leak, a deletion of something in use, or a changed request.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brokenCases } from './model/broken-guards.ts';
import { ModelThread } from './model/model-thread.ts';

/** A guard that does not count is noticed after 50 sequences or so. */
const maxRuns = 500;
const model = new ModelThread();

for (const { without, finds } of brokenCases) {
  test(`without ${without} a sequence is found that breaks a rule`, async (t) => {
    const search = { without, seed: 42 } as const;
    const found = await model.run({ ...search, isBroken: true, numRuns: maxRuns });
    t.diagnostic(`found after ${found.numRuns} sequences`);
    assert.match(found.error, finds ?? /is left behind|is deleted though/);
    const intact = await model.run({ ...search, isBroken: false, numRuns: Math.min(found.numRuns, 50) });
    assert.equal(intact.failed, false, `the guard is not what counts: ${intact.error}`);
  });
}
