import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { claimReference, selectedNode } from '../../../../src/provision/claim/claim-fields.ts';
import { makeClaim } from '../claims-and-volumes.ts';

const node = 'volume.kubernetes.io/selected-node';
const alphaNode = 'volume.alpha.kubernetes.io/selected-node';

describe('what a claim says', () => {
  for (const { name, annotations, want } of [
    { name: 'no node', annotations: {}, want: '' },
    { name: 'the node of the GA annotation', annotations: { [node]: 'n1' }, want: 'n1' },
    { name: 'the node of the alpha annotation', annotations: { [alphaNode]: 'n9' }, want: 'n9' },
    { name: 'an empty GA annotation wins', annotations: { [node]: '', [alphaNode]: 'n9' }, want: '' },
  ]) {
    test(name, () => {
      assert.equal(selectedNode(makeClaim({ annotations })), want);
    });
  }

  test('a claim without annotations has no node', () => {
    const { annotations: _none, ...metadata } = makeClaim().metadata;
    assert.equal(selectedNode({ ...makeClaim(), metadata }), '');
  });

  test('the reference holds what points at one state of one claim, and nothing else', () => {
    assert.deepEqual(claimReference(makeClaim({ labels: { a: 'b' } })), {
      kind: 'PersistentVolumeClaim',
      apiVersion: 'v1',
      namespace: 'ns',
      name: 'a',
      uid: 'u1',
      resourceVersion: '7',
    });
  });
});
