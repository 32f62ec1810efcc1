/** A driver answers CreateVolume with a topology: does the selected node have it? */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { Topology } from '../../../../src/csi/topology/topology.ts';
import type { StorageClass } from '../../../../src/provision/objects.ts';
import { driverName as usualDriver, makeClaim, makeClass, Rig, volumeOf } from '../../../support/csi-rig.ts';
import { type LogLine, recordedLogger } from '../../../support/fakes/recorded-logger.ts';
import { allowed, csiNodeObject, labels, nodeObject, nodeStores } from '../../../support/topology-clusters.ts';

const selectedNodeKey = 'volume.kubernetes.io/selected-node';
const plugin = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'];
const handedOver = 'volume.kubernetes.io/storage-provisioner';
const zoneOfEbs = 'topology.ebs.csi.aws.com/zone';

interface Row {
  name: string;
  /** What the driver answers, one text per topology. */
  made: readonly string[];
  /** Labels of node `n1`; default `Z=z1,R=rA`. */
  node?: string;
  /** Default `n1`. */
  selected?: string;
  /** What happens while the driver makes the volume. */
  meanwhile?: (nodes: ReturnType<typeof nodeStores>) => void;
  topologySupported?: boolean;
  /** What the event says; undefined: there is none. */
  says?: RegExp;
}

const rows: readonly Row[] = [
  { name: 'the topology of the node', made: ['Z=z1,R=rA'] },
  {
    name: 'another rack',
    made: ['Z=z1,R=rB'],
    says: /selected node n1 cannot use it: .* with map\[ex\.com\/rack:rB ex\.com\/zone:z1\], and this node has map\[ex\.com\/rack:rA ex\.com\/zone:z1\]\./,
  },
  { name: 'one key of the node', made: ['Z=z1'] },
  { name: 'several topologies, of which the last fits', made: ['Z=z1,R=rB', 'Z=z2,R=rA', 'Z=z1,R=rA'] },
  {
    name: 'several topologies, of which none fits',
    made: ['Z=z2', 'Z=z3'],
    says: /zone:z2\] or map\[ex\.com\/zone:z3\]/,
  },
  { name: 'a key that the node lacks', made: ['Z=z1,G=us'], says: /this node has map\[ex\.com\/zone:z1\]/ },
  { name: 'a key with an empty value that the node lacks', made: ['G='], says: /this node has map\[\]/ },
  { name: 'no topology at all', made: [] },
  { name: 'no node selected', made: ['Z=z9'], selected: '' },
  {
    name: 'a node that is gone meanwhile',
    made: ['Z=z9'],
    meanwhile: ({ nodes, csiNodes }) => {
      nodes.delete('n1');
      csiNodes.delete('n1');
    },
  },
  {
    name: 'a label that the node gets meanwhile',
    made: ['Z=z9'],
    meanwhile: ({ nodes }) => void nodes.set(nodeObject({ name: 'n1', labels: 'Z=z9,R=rA' })!),
  },
  { name: 'a driver without topology, which answers with one', made: ['Z=z9'], topologySupported: false },
];

/** Makes a volume on a cluster of one node, and gives it with the events and warnings that came of it. */
async function outcome(
  { made, node = 'Z=z1,R=rA', selected = 'n1', meanwhile, topologySupported = true }: Omit<Row, 'name'>,
  {
    driverName = usualDriver,
    storageClass = makeClass({}, { allowedTopologies: allowed('(Z:z1)') }),
  }: { driverName?: string; storageClass?: StorageClass } = {},
) {
  const lines: LogLine[] = [];
  const logger = recordedLogger(lines);
  const sample = { name: 'n1', labels: node, keys: 'Z' };
  const stores = nodeStores([sample]);
  if (driverName !== usualDriver) {
    const drivers = [{ name: driverName, topologyKeys: [zoneOfEbs] }];
    stores.csiNodes.set({ ...csiNodeObject(sample)!, spec: { drivers } });
  }
  const topology = new Topology({ driverName, nodes: stores, strict: false, immediate: true, logger });
  await using rig = await Rig.start({
    ...(topologySupported && { plugin }),
    logger,
    settings: { driverName, topology, migration: driverMigration(driverName) },
  });
  const annotations = { [handedOver]: driverName, ...(selected !== '' && { [selectedNodeKey]: selected }) };
  const claim = makeClaim({}, { annotations });
  rig.claims.set(claim);
  rig.driver.always('CreateVolume', () => {
    meanwhile?.(stores);
    const places = made.map((each) => ({ segments: labels(each) }));
    return { volume: { volume_id: 'v', capacity_bytes: '5368709120', accessible_topology: places } };
  });
  const volume = volumeOf(await rig.provision(claim, storageClass, { selectedNodeName: selected }));
  const warnings = lines.filter(({ message }) => message.startsWith('The selected node cannot use'));
  return { volume, events: rig.events, warnings };
}

describe('the topology of a volume, and the selected node', () => {
  for (const { name, says, ...row } of rows) {
    test(`${name}: ${says === undefined ? 'nothing is said' : 'an event and a log line, and the volume is kept'}`, async () => {
      const { volume, events, warnings } = await outcome(row);
      assert.equal(volume.spec.csi?.volumeHandle, 'v');
      assert.equal(warnings.length, says === undefined ? 0 : 1);
      if (says === undefined) {
        assert.deepEqual(events, []);
        return;
      }
      assert.deepEqual(
        events.map(({ type, reason, about }) => [type, reason, about.name]),
        [['Warning', 'VolumeMisplaced', 'c1']],
      );
      assert.match(events[0]?.message ?? '', says);
    });
  }

  const ofPlugin = makeClass({}, { provisioner: 'kubernetes.io/aws-ebs' });
  const ebs = { driverName: 'ebs.csi.aws.com', storageClass: ofPlugin };
  for (const [zone, count] of [
    ['us-east-1a', 0],
    ['us-east-1b', 1],
  ] as const) {
    test(`a volume in the form of an in-tree plugin is compared by the labels of the driver: ${zone}`, async () => {
      const node = `${zoneOfEbs}=us-east-1a`;
      const { volume, events } = await outcome({ made: [`${zoneOfEbs}=${zone}`], node }, ebs);
      assert.ok(volume.spec.awsElasticBlockStore, 'in the form of the plugin');
      assert.equal(events.length, count);
    });
  }
});
