import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  plannedTopology,
  SharedRequisite,
  topologyRequirement,
} from '../../../../src/csi/topology/planned-topology.ts';

const zones = (...names: string[]) => names.map((zone) => ({ segments: { zone } }));
const many = (): { segments: { zone: string } }[] => zones(...Array.from({ length: 8 }, (_, index) => `z${index}`));

describe('plannedTopology', () => {
  const requisite = zones('a', 'b', 'c');
  for (const [first, preferred] of [
    [0, zones('a', 'b', 'c')],
    [1, zones('b', 'c', 'a')],
    [2, zones('c', 'a', 'b')],
  ] as const) {
    test(`preferred from index ${first} on`, () => {
      const planned = plannedTopology({ requisite, preferred });
      assert.deepEqual(planned, { requisite, first });
      assert.deepEqual(topologyRequirement(planned), { requisite, preferred });
    });
  }

  test('of two equal topologies the one that makes the order right', () => {
    const requirement = { requisite: zones('a', 'a', 'b'), preferred: zones('a', 'b', 'a') };
    assert.deepEqual(topologyRequirement(plannedTopology(requirement)), requirement);
  });

  test('an empty requirement stays one', () => {
    assert.deepEqual(plannedTopology({ requisite: [], preferred: [] }), { requisite: [], first: 0 });
    assert.deepEqual(topologyRequirement({ requisite: [], first: 0 }), { requisite: [], preferred: [] });
  });

  test('other topologies, or others in order, are an error', () => {
    for (const preferred of [zones('a', 'c', 'b'), zones('a', 'b'), zones('a', 'b', 'x'), undefined]) {
      assert.throws(() => plannedTopology({ requisite, ...(preferred && { preferred }) }), /not the requisite ones/);
    }
    const other = [{ segments: { zone: 'a', rack: 'r' } }];
    assert.throws(() => plannedTopology({ requisite: zones('a'), preferred: other }), /not the requisite ones/);
  });
});

describe('SharedRequisite', () => {
  test('plans with the same long list have one, whatever they prefer', () => {
    const shared = new SharedRequisite();
    const [one, two] = [shared.share({ requisite: many(), first: 0 }), shared.share({ requisite: many(), first: 3 })];
    assert.equal(one.requisite, two.requisite);
    assert.deepEqual(two, { requisite: many(), first: 3 });
  });

  test('a changed list is a new one, a short one between them is not kept', () => {
    const shared = new SharedRequisite();
    const { requisite: before } = shared.share({ requisite: many(), first: 0 });
    shared.share({ requisite: zones('a'), first: 0 });
    assert.equal(shared.share({ requisite: many(), first: 0 }).requisite, before);
    const grown = [...many(), ...zones('new')];
    assert.equal(shared.share({ requisite: grown, first: 0 }).requisite, grown);
  });
});
