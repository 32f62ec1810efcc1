import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { centralVolumeHome, nodeVolumeHome } from '../../../src/audit/volume-home.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';

const driverName = 'd.example.com';

function volume({ madeBy, node }: { madeBy?: string; node?: string }): PersistentVolume {
  const key = 'storage.kubernetes.io/csiProvisionerIdentity';
  const volumeAttributes = madeBy === undefined ? {} : { [key]: `1-2-${madeBy}` };
  const matchExpressions = [{ key: 'host', operator: 'In', values: [node ?? ''] }];
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions }] } };
  return {
    metadata: { name: 'pv' },
    spec: {
      csi: { driver: driverName, volumeHandle: 'h', volumeAttributes },
      ...(node !== undefined && { nodeAffinity }),
    },
  };
}

describe('the home of a volume', () => {
  const nodeInfo = { nodeId: 'n1', segments: { host: 'n1' } };

  for (const { what, given, want } of [
    { what: 'made by this node', given: { madeBy: `${driverName}-n1` }, want: 'here' },
    {
      what: 'made by this node, whose segments have changed',
      given: { madeBy: `${driverName}-n1`, node: 'old' },
      want: 'here',
    },
    { what: 'that fits this node', given: { node: 'n1' }, want: 'here' },
    { what: 'that fits another node', given: { node: 'n2' }, want: 'elsewhere' },
    { what: 'made by another node', given: { madeBy: `${driverName}-n2` }, want: 'elsewhere' },
    {
      what: 'made by another node that fits this one',
      given: { madeBy: `${driverName}-n2`, node: 'n1' },
      want: 'unknown',
    },
    { what: 'about which nothing is known', given: {}, want: 'unknown' },
    { what: 'that a central sidecar made', given: { madeBy: driverName }, want: 'unknown' },
  ] as const) {
    test(`${what} is ${want}, for the driver of a node`, () => {
      assert.equal(nodeVolumeHome(volume(given), { driverName, nodeName: 'n1', nodeInfo }), want);
    });
  }

  test('is unknown for a node without segments, unless the maker says it', () => {
    const node = { driverName, nodeName: 'n1', nodeInfo: { nodeId: 'n1', segments: undefined } };
    assert.equal(nodeVolumeHome(volume({ node: 'n1' }), node), 'unknown');
    assert.equal(nodeVolumeHome(volume({ madeBy: `${driverName}-n1` }), node), 'here');
  });

  test('is here for the only driver, unless a node has made it', () => {
    assert.equal(centralVolumeHome(volume({}), driverName), 'here');
    assert.equal(centralVolumeHome(volume({ madeBy: driverName, node: 'n2' }), driverName), 'here');
    assert.equal(centralVolumeHome(volume({ madeBy: `${driverName}-n1` }), driverName), 'unknown');
  });
});
