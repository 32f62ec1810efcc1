/**
 * A model check: random sequences of crashes, late answers, lost leases, faults of the backend and changes by others, with the
 * real controller and the real journal on a simulated outside. `MODEL_RUNS` raises the number of sequences, with a random
 * seed; `MODEL_SEED` repeats one.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Focus, focuses } from './model/commands.ts';
import { ModelThread } from './model/model-thread.ts';

const { MODEL_RUNS: runs, MODEL_SEED: seed } = process.env;
const model = new ModelThread();

for (const focus of Object.keys(focuses) as Focus[]) {
  test(`no volume leaks, doubles, changes or is deleted in use: ${focus}`, async () => {
    const { failed, report, error } = await model.run({
      focus,
      numRuns: Number(runs ?? 80),
      ...(runs === undefined && { seed: 42 }),
      ...(seed !== undefined && { seed: Number(seed) }),
    });
    assert.equal(failed, false, `${report}\n${error}`);
  });
}
