/** The suite for provisioners finds mistakes, and says what is left behind or lost. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { describe, test } from 'node:test';
import { sourceArguments } from '../support/source-arguments.ts';

const suite = path.join(import.meta.dirname, 'seeded-suite.ts');

/** Runs the stories whose titles match, in a process of their own. */
function runSuite(mistake: string, stories: string): { code: number | null; output: string } {
  const { NODE_TEST_CONTEXT: _ours, ...env } = process.env;
  const args = [...sourceArguments, '--test', '--test-reporter=tap', `--test-name-pattern=${stories}`, suite];
  const { status, stdout } = spawnSync(process.execPath, args, { env: { ...env, MISTAKE: mistake }, encoding: 'utf8' });
  return { code: status, output: stdout };
}

const mistakes = [
  {
    mistake: 'a random part in the name',
    story: 'before the volume is saved, the claim gets one volume',
    says: /leak: the storage "pvc-[-0-9a-f]+", which process 1 has made, is in no PersistentVolume\n.*double: storage was made more than once: "pvc-\S+" by process 1, "pvc-\S+" by process 2/s,
  },
  {
    mistake: 'a revoke that does nothing',
    story: 'before the volume is saved, nothing is left of a claim that is deleted meanwhile',
    says: /leak: the storage "pvc-[-0-9a-f]+", which process 1 has made, is in no PersistentVolume/,
  },
  {
    mistake: 'a part that only fulfil removes',
    story: 'as soon as there is storage, nothing is left of a claim that is deleted meanwhile',
    says: /leak: the storage "pvc-[-0-9a-f]+\.part", which process 1 has made, is in no PersistentVolume/,
  },
  {
    mistake: 'a revoke that works once',
    story: 'as soon as the storage is gone, nothing is left of a deleted claim',
    says: /open: the record of the claim default\/claim-\d+ is not closed, but in the phase delete/,
  },
  {
    mistake: 'a delete that forgets',
    story: 'a claim becomes a volume, and both go',
    says: /leak: the storage "pvc-[-0-9a-f]+" is in no PersistentVolume/,
  },
  {
    mistake: 'storage keys that are always empty',
    story: 'storage that a second PersistentVolume has',
    says: /loss: the storage "pvc-[-0-9a-f]+" of the PersistentVolume pvc-\S+ is gone/,
  },
  {
    mistake: 'no records',
    story: 'when the plan is recorded, before it gets the response, the claim gets one volume',
    says: /the claim is Bound, but the provisioner never reached the step: when the plan is recorded, before it gets the response/,
  },
  {
    mistake: 'a clean-up after a pause',
    story:
      'frozen when it has fulfilled, before the volume is saved, until its lease has expired, the claim gets one volume',
    says: /loss: the storage "pvc-[-0-9a-f]+" of the PersistentVolume pvc-\S+ is gone/,
  },
  {
    mistake: 'an end by itself',
    story: 'a claim becomes a volume, and both go',
    says: /the program has ended by itself, with exit code 3.*process 1:\n.*the backend is gone/s,
  },
  {
    mistake: 'no right to create events',
    story: 'a claim becomes a volume, and both go',
    says: /forbidden: create events in the namespace "default"; the rule that is missing: \{apiGroups: \[''\], resources: \['events'\], verbs: \[create\]\}/,
  },
  {
    mistake: 'no right to patch persistentvolumes',
    story: 'a claim becomes a volume, and both go',
    says: /forbidden: patch persistentvolumes at the scope of the cluster; the rule that is missing: \{apiGroups: \[''\], resources: \['persistentvolumes'\], verbs: \[patch\]\}/,
  },
  {
    mistake: 'no right to list storageclasses',
    story: 'a claim becomes a volume, and both go',
    says: /forbidden: list storageclasses at the scope of the cluster; the rule that is missing: \{apiGroups: \['storage.k8s.io'\]/,
  },
  {
    mistake: 'no right to update leases',
    story: 'killed when it has planned, before the plan is recorded, the claim gets one volume',
    says: /forbidden: update leases in the namespace "default"; the rule that is missing: \{apiGroups: \['coordination.k8s.io'\]/,
  },
];

describe('testProvisioner', () => {
  for (const { mistake, story, says } of mistakes) {
    test(`names what comes of ${mistake}`, () => {
      const { code, output } = runSuite(mistake, story);
      assert.equal(code, 1, output);
      assert.match(output, says);
      assert.match(output, /The end of the log of process \d+:/);
    });
  }

  test('says that maxCallMs makes the suite slow', () => {
    const story = 'as soon as there is storage, nothing is left of a claim that is deleted meanwhile';
    const { code, output } = runSuite('a long maxCallMs', story);
    assert.equal(code, 0, output);
    assert.match(
      output,
      /storage that no claim wants was deleted \d\d s after .* takes less time with a lower maxCallMs/,
    );
  });

  test('passes the same provisioner without a mistake, in the same stories', () => {
    const { code, output } = runSuite('none', `(${mistakes.map(({ story }) => story).join('|')})`);
    assert.equal(code, 0, output);
    assert.match(output, new RegExp(`^# pass ${new Set(mistakes.map(({ story }) => story)).size}$`, 'm'));
  });
});
