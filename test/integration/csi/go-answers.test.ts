/** What the Go sidecar v6.4 made of thousands of inputs, against what ours makes of them. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Rig } from '../../support/csi-rig.ts';
import { type Exception, type Replay, replay } from './go-answers/answers.ts';
import { deletion, type DeleteCase, provision, type ProvisionCase } from './go-answers/calls.ts';
import { exceptions } from './go-answers/exceptions.ts';
import { firstStep, csiForm, rules, type TopologyCase } from './go-answers/rules.ts';

describe('the answers of the Go sidecar', () => {
  const used = new Set<Exception>();
  const options = { exceptions, used };
  let rig: Rig;
  before(async () => {
    rig = await Rig.start();
  });
  after(() => rig[Symbol.asyncDispose]());

  const calls: Record<string, () => Promise<Replay>> = {
    provision: () => replay<ProvisionCase, object>('provision', (given) => provision(rig, given), options),
    migrated: () => replay<ProvisionCase, object>('migrated', (given) => provision(rig, given), options),
    delete: () => replay<DeleteCase, object>('delete', (given) => deletion(rig, given), options),
  };
  for (const [file, run] of Object.entries(calls)) {
    test(`${file}: whole calls`, async () => assertSame(await run()));
  }

  const topology = ['topology', 'topology-keysets'];
  for (const file of topology) {
    test(file, async () => {
      const part = ({ steps }: { steps: object[] }): object => steps[0] ?? {};
      assertSame(await replay<TopologyCase, { steps: object[] }>(file, firstStep, { ...options, part }));
    });
  }

  for (const [file, rule] of Object.entries(rules)) {
    const part = file === 'toCsi' ? csiForm : undefined;
    test(file, async () => assertSame(await replay(file, rule, { ...options, ...(part && { part }) })));
  }

  test('every file is replayed', () => {
    const files = readdirSync(join(import.meta.dirname, 'go-answers')).filter((name) => name.endsWith('.gz'));
    const replayed = [...Object.keys(calls), ...topology, ...Object.keys(rules)].map((file) => `${file}.jsonl.gz`);
    assert.deepEqual(replayed.sort(), files.sort());
  });

  test('every exception is needed', () => {
    assert.deepEqual(
      exceptions.filter((each) => !used.has(each)),
      [],
    );
  });
});

function assertSame({ lines, differences }: Replay): void {
  assert.ok(lines > 0, 'no line was read');
  assert.equal(
    differences.length,
    0,
    `${differences.length} of ${lines} differ\n${differences.slice(0, 20).join('\n')}`,
  );
}
