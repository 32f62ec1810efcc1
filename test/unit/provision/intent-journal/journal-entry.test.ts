import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { IntentRecord } from '../../../../src/provision/intent-journal/intent-journal.ts';
import { entryOf, parseEntry, recordOf, withHead } from '../../../../src/provision/intent-journal/journal-entry.ts';
import { PlanReader, PlanWriter } from '../../../../src/provision/intent-journal/plan-text.ts';

const uid = '3f5c1c1e-0c1a-4f43-9d7a-111111111111';

const renewedAt = '2026-01-01T00:00:00.000Z';

function record(plan: Record<string, unknown>): IntentRecord {
  return {
    claim: { namespace: 'ns', name: 'a', uid },
    volume: { name: 'pvc-a', claimRef: { name: 'a' }, className: 'c', provisioner: 'drv', defaults: {} },
    plan,
    phase: 'create',
    createdAt: '2026-01-01T00:00:00Z',
  };
}

function entry(plan: Record<string, unknown>, plans = new PlanWriter()) {
  return entryOf(record(plan), { writer: 'w', renewedAt, reportOnly: '', plans });
}

describe('records in entries', () => {
  test('any plan is read as it was written, also by another process and with values that were taken out', () => {
    const [plans, reader] = [new PlanWriter(), new PlanReader()];
    const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 6 }));
    fc.assert(
      fc.property(json, json, (big, small) => {
        const plan = JSON.parse(
          JSON.stringify({ big, small, again: { big }, long: 'x'.repeat(300), longer: [small, 'y'.repeat(5000)] }),
        ) as typeof big;
        for (let i = 0; i < 2; i++) {
          const written = entry(plan, plans);
          assert.deepEqual(recordOf(written, reader), record(plan));
          const shared = new Map([...written.shared, ['shared-other', '{}']]);
          const read = parseEntry(uid, written.text, { shared, plans: reader });
          assert.deepEqual(read, written);
          const taken = withHead(read, { writer: 'v', reportOnly: 'a copy' });
          assert.deepEqual(recordOf(taken, reader), record(plan));
          const again = parseEntry(uid, taken.text, { shared: taken.shared, plans: reader });
          assert.deepEqual([again.writer, again.reportOnly, again.renewedAt], ['v', 'a copy', renewedAt]);
          const later = withHead(again, { renewedAt: '2026-01-02T00:00:00.000Z' });
          assert.deepEqual(later, parseEntry(uid, later.text, { shared: later.shared, plans: reader }));
          assert.deepEqual(withHead(later, { renewedAt }), again);
          const followed = withHead(again, { since: '4711' });
          assert.deepEqual(followed, parseEntry(uid, followed.text, { shared: followed.shared, plans: reader }));
          assert.deepEqual(recordOf(followed, reader), { ...record(plan), since: '4711' });
        }
      }),
      { numRuns: 300 },
    );
  });

  test('an edited entry keeps its mark when it is renewed, whatever its order', () => {
    const { text } = withHead(entry({}), { reportOnly: 'a copy' });
    const { writer, ...rest } = JSON.parse(text) as { writer: string };
    const edited = parseEntry(uid, JSON.stringify({ ...rest, writer }), { shared: new Map(), plans: new PlanReader() });
    const later = withHead(edited, { renewedAt: '2026-01-02T00:00:00.000Z' });
    const read = parseEntry(uid, later.text, { shared: new Map(), plans: new PlanReader() });
    assert.deepEqual([read.reportOnly, read.renewedAt], ['a copy', '2026-01-02T00:00:00.000Z']);
    assert.equal(later.text.match(/renewedAt/g)?.length, 1);
  });

  test('a value is taken out once a second plan has it, and the keys of equal values are equal', () => {
    const plans = new PlanWriter();
    const parameters = { text: 'p'.repeat(150), more: 'q'.repeat(100) };
    assert.equal(entry({ request: { name: 'a', parameters } }, plans).shared.size, 0);
    const second = entry({ request: { name: 'b', parameters } }, plans);
    assert.deepEqual([...second.shared.values()], [JSON.stringify(parameters)]);
    assert.doesNotMatch(second.text, /ppp/);
    const elsewhere = new PlanWriter();
    entry({ parameters }, elsewhere);
    assert.deepEqual(entry({ parameters }, elsewhere).shared, second.shared);
  });

  test('a long value is taken out at once, a list as a whole', () => {
    const requisite = Array.from({ length: 9 }, (_, i) => ({ segments: { zone: `zone-${i}-${'z'.repeat(250)}` } }));
    const { shared, text } = entry({ request: { topology: { requisite } } });
    assert.deepEqual([...shared.values()], [JSON.stringify(requisite)]);
    assert.ok(text.length < 700, text);
  });

  test('a list of thousands is stored compressed, and is one object in all plans that are read', () => {
    const segments = (i: number): object => ({ 'topology.example.com/node': `worker-${i}.cluster.example.com` });
    const requisite = Array.from({ length: 5000 }, (_, i) => ({ segments: segments(i) }));
    const [plans, reader] = [new PlanWriter(), new PlanReader()];
    const written = [0, 1].map((first) => entry({ topology: { requisite, first } }, plans));
    const [stored = '', ...others] = new Set(written.flatMap(({ shared }) => [...shared.values()]));
    assert.deepEqual(others, []);
    assert.ok(stored.length < 40_000, `${stored.length}`);
    const [a, b] = written.map(
      (each) => recordOf(each, reader).plan['topology'] as { requisite: object; first: number },
    );
    assert.deepEqual([a?.requisite, a?.first, b?.first], [requisite, 0, 1]);
    assert.equal(a?.requisite, b?.requisite);
  });

  test('what only looks like a value that was taken out stays as it is', () => {
    const plan = { shared: [[['a'], 'shared-0']], a: null, record: { plan: null } };
    assert.deepEqual(recordOf(entry(plan), new PlanReader()), record(plan));
  });

  for (const [what, key, text] of [
    ['text that is not JSON', uid, '{'],
    ['a record of another claim', 'b', entry({}).text],
    ['an unknown phase', uid, entry({}).text.replace('"create"', '"later"')],
    ['a record without a writer', uid, entry({}).text.replace('"writer":"w",', '')],
    ['a record without a time', uid, entry({}).text.replace(`"renewedAt":"${renewedAt}",`, '')],
    ['a time that is none', uid, entry({}).text.replace(`"renewedAt":"${renewedAt}"`, '"renewedAt":"then"')],
    ['a version that is none', uid, entry({}).text.replace('"shared":[]', '"since":5,"shared":[]')],
    ['a record without a list of shared values', uid, entry({}).text.replace('"shared":[],', '')],
    ['a missing shared value', uid, entry({ a: 'x'.repeat(3000) }).text],
  ] as const) {
    test(`${what} is not read`, () => {
      assert.throws(() => parseEntry(key, text, { shared: new Map(), plans: new PlanReader() }));
    });
  }
});
