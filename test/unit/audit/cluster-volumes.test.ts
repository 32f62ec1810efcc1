import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { centralVolumeHome, ClusterVolumes, nodeVolumeHome } from '../../../src/audit/cluster-volumes.ts';
import { driverMigration } from '../../../src/csi/migration/driver-migration.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';

function clusterVolumes(): ClusterVolumes {
  const driverName = 'ebs.csi.aws.com';
  return new ClusterVolumes({
    driverName,
    migration: driverMigration(driverName),
    pluginName: 'kubernetes.io/aws-ebs',
    homeOf: () => 'here',
  });
}

const inTree = (name: string, source: object): PersistentVolume => ({
  metadata: { name },
  spec: { awsElasticBlockStore: source },
});

describe('in-tree volumes in an audit', () => {
  test('are compared with the ids of the driver in one pass, however many there are', async () => {
    const count = 300;
    let reads = 0;
    const volumes = clusterVolumes();
    for (let number = 0; number < count; number++) {
      const source = {
        get volumeID() {
          reads++;
          return `aws://us-west-2a/vol-${number}`;
        },
      };
      volumes.add(inTree(`pv-${number}`, source));
    }
    const ids = new Map(Array.from({ length: count }, (_, number) => [`vol-other-${number}`, 0]));
    ids.set('vol-7', 1);
    await volumes.takeInTree(ids);
    assert.equal(ids.size, count, 'the one of a volume is taken');
    assert.equal(ids.has('vol-7'), false);
    assert.ok(reads <= 10 * count, `${reads} reads of ${count} sources`);
  });

  test('of one disk are all found with it', async () => {
    const volumes = clusterVolumes();
    volumes.add(inTree('pv-1', { volumeID: 'aws://x/y/vol-1' }));
    volumes.add(inTree('pv-2', { volumeID: 'aws://x/y/vol-1' }));
    volumes.add(inTree('pv-3', { volumeID: 'aws://x/y/vol-2' }));
    await volumes.takeInTree(new Map([['aws://x/y/vol-1', 0]]));
    const listed = [...volumes.handles()].flatMap((first) => {
      const names: string[] = [];
      for (let each: typeof first | undefined = first; each !== undefined; each = each.next) {
        if (each.isListed) names.push(each.name);
      }
      return names;
    });
    assert.deepEqual(listed.sort(), ['pv-1', 'pv-2']);
  });
});

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
