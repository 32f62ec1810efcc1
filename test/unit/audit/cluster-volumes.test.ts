import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ClusterVolumes } from '../../../src/audit/cluster-volumes.ts';
import { driverMigration } from '../../../src/csi/migration/driver-migration.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';

const driverName = 'ebs.csi.aws.com';

function clusterVolumes(): ClusterVolumes {
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
