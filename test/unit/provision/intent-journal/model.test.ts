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
      numRuns: Number(runs ?? 25),
      ...(runs === undefined && { seed: 42 }),
      ...(seed !== undefined && { seed: Number(seed) }),
    });
    assert.equal(failed, false, `${report}\n${error}`);
  });
}

/** Sequences that have broken a rule once, and that random ones come across too seldom. */
const knownSequences = {
  'a volume that another process has saved, and whose claim is gone, is not left behind by one whose caches are behind':
    [
      'create claim 0 of class delete',
      'until update leases is sent',
      'the watches are held',
      'start',
      '61000 ms pass',
      'Kubernetes binds',
      'delete claim 0',
      'Kubernetes binds',
      'the watches go on',
    ],
  'a volume that a restored etcd never had is not deleted': [
    'etcd is backed up',
    'create claim 0 of class delete',
    'crash once list persistentvolumes is sent, start again',
    'etcd is restored',
    'pause once CreateVolume is sent, another takes over and the claims go',
  ],
};

for (const [title, first] of Object.entries(knownSequences)) {
  test(`whatever the names, the store and the election: ${title}`, async () => {
    const { failed, report, error } = await model.run({
      focus: { first, texts: ['everything is answered'], maxCommands: 1 },
      numRuns: 40,
      seed: 42,
    });
    assert.equal(failed, false, `${report}\n${error}`);
  });
}
