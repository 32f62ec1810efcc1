import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compareBytes } from '../../../../src/base/compare-bytes.ts';
import {
  allowedTerms,
  compareTerms,
  isWithin,
  rotated,
  sortedTerms,
  termOf,
  topologies,
  type TopologyTerm,
  isLabelName,
  labelsText,
  termsText,
} from '../../../../src/csi/topology/topology-term.ts';
import { anyText } from '../../../support/any-text.ts';

/** Few letters, so that equal keys and values meet; some beyond U+FFFF and some just below. */
const word = fc.string({ unit: fc.constantFrom('a', 'b', 'Z', '-', '\u{e9}', '\u{ffee}', '\u{1f600}'), maxLength: 3 });
const aTerm = fc
  .dictionary(word, word, { maxKeys: 3, noNullPrototype: true })
  .map((labels) => termOf(labels, Object.keys(labels)) ?? []);
const someTerms = fc.array(aTerm, { maxLength: 8 });
const someAllowed = fc.array(
  fc.record({
    matchLabelExpressions: fc.array(fc.record({ key: word, values: fc.array(word, { minLength: 1, maxLength: 3 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
  }),
  { maxLength: 3 },
);

/** The order by its definition: bytes of each text, one after the other. */
function byDefinition(a: TopologyTerm, b: TopologyTerm): number {
  const flat = (term: TopologyTerm) => term.flatMap(({ key, value }) => [Buffer.from(key), Buffer.from(value)]);
  const [ones, others] = [flat(a), flat(b)];
  if (ones.length !== others.length) return ones.length - others.length;
  return ones.map((one, index) => Buffer.compare(one, others[index] ?? one)).find((order) => order !== 0) ?? 0;
}

describe('compareBytes', () => {
  test('orders any texts as their UTF-8 bytes', () => {
    const text = anyText();
    fc.assert(
      fc.property(fc.oneof(text, word), fc.oneof(text, word), (a, b) => {
        assert.equal(Math.sign(compareBytes(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });

  test('knows no locale and no case', () => {
    const sorted = ['z1', 'z2', 'Z9', 'z10', '\u{1f600}', '\u{ffee}', ''].toSorted(compareBytes);
    assert.deepEqual(sorted, ['', 'Z9', 'z1', 'z10', 'z2', '\u{ffee}', '\u{1f600}']);
  });
});

describe('terms', () => {
  test('are sorted as their definition says, each once', () => {
    fc.assert(
      fc.property(someTerms, (terms) => {
        const sorted = sortedTerms(terms);
        for (const [index, term] of sorted.entries()) {
          if (index > 0) assert.ok(byDefinition(sorted[index - 1] ?? [], term) < 0);
          assert.ok(terms.includes(term));
        }
        for (const term of terms) assert.ok(sorted.some((each) => compareTerms(each, term) === 0));
        assert.deepEqual(sortedTerms(terms.toReversed()), sorted);
      }),
    );
  });

  test('are within others as sets are', () => {
    fc.assert(
      fc.property(aTerm, aTerm, (a, b) => {
        const held = new Set(b.map((pair) => JSON.stringify(pair)));
        const every = a.map((pair) => JSON.stringify(pair)).every((pair) => held.has(pair));
        assert.equal(isWithin(a, b), every);
        assert.ok(isWithin([], b));
        assert.ok(isWithin(a, a));
      }),
    );
  });

  test('rotated keep their cyclic order and lose nothing', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(), { minLength: 1 }), fc.nat(), (list, turn) => {
        const start = turn % list.length;
        const turned = rotated(list, start);
        assert.equal(turned[0], list[start]);
        assert.deepEqual(rotated(turned, (list.length - start) % list.length), list);
      }),
    );
  });

  test('of a class are every choice of one value for each expression', () => {
    fc.assert(
      fc.property(someAllowed, (allowed) => {
        const flat = allowedTerms(allowed);
        const choices = allowed.map(({ matchLabelExpressions }) =>
          matchLabelExpressions.reduce((product, { values }) => product * values.length, 1),
        );
        assert.equal(
          flat.length,
          choices.reduce((sum, count) => sum + count, 0),
        );
        for (const term of flat) {
          assert.deepEqual(
            term,
            term.toSorted((a, b) => byDefinition([a], [b])),
          );
          assert.ok(
            allowed.some(
              ({ matchLabelExpressions }) =>
                matchLabelExpressions.length === term.length &&
                matchLabelExpressions.every(({ key, values }) =>
                  term.some((pair) => pair.key === key && values.includes(pair.value)),
                ) &&
                term.every((pair) =>
                  matchLabelExpressions.some(({ key, values }) => pair.key === key && values.includes(pair.value)),
                ),
            ),
          );
        }
      }),
    );
  });

  test('as messages say nothing of empty ones', () => {
    assert.deepEqual(
      topologies([[], [{ key: '__proto__', value: 'x' }]]).map(({ segments }) => Object.entries(segments ?? {})),
      [[['__proto__', 'x']]],
    );
  });

  test('need every key, and take no key from elsewhere', () => {
    assert.equal(termOf({ a: '1' }, ['a', 'b']), undefined);
    assert.equal(termOf({ a: '1' }, ['toString']), undefined);
    assert.equal(termOf(undefined, ['a']), undefined);
    assert.deepEqual(termOf({ a: '' }, ['a']), [{ key: 'a', value: '' }]);
  });
});

describe('texts about topology', () => {
  test('have the form of Go', () => {
    assert.equal(labelsText({}), 'map[]');
    assert.equal(labelsText({ b: '2', B: '', a: '1' }), 'map[B: a:1 b:2]');
    assert.equal(termsText([]), '[]');
    assert.equal(
      termsText([
        [{ key: 'a', value: '' }],
        [
          { key: 'a', value: '1' },
          { key: 'b', value: '2' },
        ],
      ]),
      '[[{a }] [{a 1} {b 2}]]',
    );
  });
});

describe('isLabelName', () => {
  for (const name of ['zone', 'ex.com/zone', 'A_b.C-d', 'x', 'a.b-c.d/x']) {
    test(`${name} is one`, () => assert.ok(isLabelName(name)));
  }
  for (const name of [
    '',
    '/zone',
    'ex.com/',
    'a/b/c',
    'Ex.com/zone',
    '-a',
    'a-',
    'a b',
    'x'.repeat(64),
    `${'a.'.repeat(127)}/x`,
  ]) {
    test(`${JSON.stringify(name)} is none`, () => assert.ok(!isLabelName(name)));
  }
});
