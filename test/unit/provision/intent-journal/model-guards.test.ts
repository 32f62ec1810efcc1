/**
 * The model check is effective: without a guard it finds a leak, a deletion of something in use, or a changed request.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type BrokenCase, brokenCases } from './model/broken-guards.ts';
import { runModel } from './model/run-model.ts';
import type { BrokenGuards } from './model/sim-process.ts';

/** A guard that does not count is noticed after 50 sequences or so. */
const maxRuns = 500;

function search({ commands, election }: BrokenCase, broken: BrokenGuards, numRuns: number) {
  const elections = election === undefined ? fc.boolean() : fc.constant(election);
  return runModel({ broken, focus: commands, numRuns, seed: 42, endOnFailure: true, elections });
}

for (const each of brokenCases) {
  test(`without ${each.without} a sequence is found that breaks a rule`, async (t) => {
    const found = await search(each, each.broken, maxRuns);
    t.diagnostic(`found after ${found.numRuns} sequences`);
    assert.match(String(found.errorInstance), each.finds ?? /is left behind|is deleted though/);
    const intact = await search(each, {}, Math.min(found.numRuns, 50));
    assert.equal(intact.failed, false, `the guard is not what counts: ${String(intact.errorInstance)}`);
  });
}
