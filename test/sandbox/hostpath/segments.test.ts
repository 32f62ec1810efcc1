import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fulfils, ownSegments, placesFor, segmentsWithin } from '../../../sandbox/hostpath/segments.ts';

const served = new Map([
  ['zone', ['a', 'b']],
  ['disk', ['ssd']],
]);
const none = new Map<string, string[]>();
const term = (segments: Record<string, string>) => ({ segments });

test('a node is in the first value of each key', () => {
  assert.deepEqual(ownSegments(served), { zone: 'a', disk: 'ssd' });
});

describe('placesFor', () => {
  const cases = [
    { name: 'no requirement: this node', requirement: undefined, want: ['a'] },
    { name: 'an empty one: this node', requirement: { requisite: [], preferred: [] }, want: ['a'] },
    {
      name: 'the preferred terms come first',
      requirement: { requisite: [term({ zone: 'a' }), term({ zone: 'b' })], preferred: [term({ zone: 'b' })] },
      want: ['b', 'a', 'b'],
    },
    {
      name: 'terms elsewhere are passed over',
      requirement: { requisite: [term({ zone: 'z' }), term({ rack: '1' }), term({ zone: 'b', disk: 'ssd' })] },
      want: ['b'],
    },
  ];
  for (const { name, requirement, want } of cases) {
    test(name, () => {
      assert.deepEqual(
        placesFor(served, requirement),
        want.map((zone) => ({ zone, disk: 'ssd' })),
      );
    });
  }

  test('no term that is served is RESOURCE_EXHAUSTED', () => {
    assert.throws(() => placesFor(served, { requisite: [term({ zone: 'z' })] }), { codeName: 'RESOURCE_EXHAUSTED' });
  });

  test('a driver without topology has no places', () => {
    assert.equal(placesFor(none, { requisite: [term({ zone: 'z' })] }), undefined);
  });
});

describe('segmentsWithin', () => {
  const cases = [
    {
      name: 'everything',
      topology: served,
      asked: {},
      want: [
        { zone: 'a', disk: 'ssd' },
        { zone: 'b', disk: 'ssd' },
      ],
    },
    { name: 'one zone', topology: served, asked: { zone: 'b' }, want: [{ zone: 'b', disk: 'ssd' }] },
    { name: 'an unknown zone', topology: served, asked: { zone: 'z' }, want: [] },
    { name: 'no topology, nothing asked', topology: none, asked: {}, want: [undefined] },
    { name: 'no topology, a zone asked', topology: none, asked: { zone: 'a' }, want: [] },
  ];
  for (const { name, topology, asked, want } of cases) {
    test(name, () => assert.deepEqual(segmentsWithin(topology, asked), want));
  }
});

describe('fulfils', () => {
  const here = { zone: 'a', disk: 'ssd' };
  const cases = [
    { name: 'no requirement', requirement: undefined, want: true },
    { name: 'a requisite term', requirement: { requisite: [term({ zone: 'z' }), term({ zone: 'a' })] }, want: true },
    { name: 'no requisite term', requirement: { requisite: [term({ zone: 'b' })] }, want: false },
    {
      name: 'only the requisite terms count',
      requirement: { requisite: [term({ zone: 'b' })], preferred: [term({ zone: 'a' })] },
      want: false,
    },
    { name: 'preferred ones alone', requirement: { preferred: [term({ zone: 'b' })] }, want: false },
  ];
  for (const { name, requirement, want } of cases) {
    test(name, () => assert.equal(fulfils(here, requirement), want));
  }
});
