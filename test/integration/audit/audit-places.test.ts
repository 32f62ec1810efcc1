/** Where an audit looks: node deployment, in-tree volumes, and what it may not read. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, driverName, states } from './rig.ts';

function madeOn(node: string, name = driverName): object {
  const volumeAttributes = { 'storage.kubernetes.io/csiProvisionerIdentity': `1763640000000-1234-${name}-${node}` };
  return { csi: { driver: name, volumeHandle: `vol-of-${node}`, volumeAttributes } };
}

function onNode(node: string, volumeHandle: string): object {
  const matchExpressions = [{ key: 'host', operator: 'In', values: [node] }];
  return {
    csi: { driver: driverName, volumeHandle },
    nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
  };
}

describe('an audit in node deployment', () => {
  const flags = ['--node-deployment'];

  async function started(): Promise<AuditRig> {
    const rig = await AuditRig.start();
    rig.driver.always('NodeGetInfo', { node_id: 'n1', accessible_topology: { segments: { host: 'n1' } } });
    rig.lists();
    return rig;
  }

  test('calls only volumes of its node lost', async () => {
    await using rig = await started();
    rig.addVolume('pv-1', 'vol-1', { spec: onNode('n1', 'vol-1') });
    rig.addVolume('pv-2', 'vol-2', { spec: onNode('n2', 'vol-2') });
    rig.addVolume('pv-made-here', '', { spec: madeOn('n1') });
    rig.addVolume('pv-made-there', '', { spec: madeOn('n2') });
    rig.addVolume('pv-anywhere', 'vol-anywhere');
    const report = await rig.report(...flags);
    assert.deepEqual(states(report), ['lost vol-1', 'lost vol-of-n1', 'unverified vol-anywhere']);
    assert.equal(report.counts['otherNodes'], 2);
  });

  test('reads the journal of its node, and not the central one', async () => {
    await using rig = await started();
    await rig.put({ ...recordOf(1), phase: 'stuck', problem: 'central' });
    const own = await rig.cluster.open({ lockName: 'drv-example-com.n1' });
    await own.journal.put({ ...recordOf(2), phase: 'stuck', problem: 'of n1' }, new AbortController().signal);
    const report = await rig.report(...flags);
    assert.deepEqual(
      report.findings.map(({ claim }) => claim),
      ['ns/claim-2'],
    );
  });

  test('that was started without the flag calls no volume of a node lost', async () => {
    await using rig = await started();
    rig.addVolume('pv-1', '', { spec: madeOn('n1') });
    const report = await rig.report();
    assert.deepEqual(states(report), ['unverified vol-of-n1']);
    assert.match(report.findings[0]?.detail ?? '', /run the audit there with --node-deployment/);
  });
});

describe('an audit of a driver that replaced an in-tree plugin', () => {
  const inTree = (volumeID: string) => ({ csi: undefined, awsElasticBlockStore: { volumeID } });
  const annotations = { 'pv.kubernetes.io/provisioned-by': 'kubernetes.io/aws-ebs' };

  test('knows the volumes of the plugin by the ids of the driver', async () => {
    await using rig = await AuditRig.start({ name: 'ebs.csi.aws.com' });
    rig.addVolume('pv-1', '', { annotations, spec: inTree('aws://us-west-2a/vol-1') });
    rig.addVolume('pv-2', '', { annotations, spec: inTree('vol-2') });
    rig.addVolume('pv-other', '', { annotations, spec: { csi: undefined, nfs: { server: 's', path: '/' } } });
    rig.lists('vol-1', 'vol-3');
    const report = await rig.report();
    assert.deepEqual(states(report), ['unverified vol-2', 'unexplained vol-3']);
    assert.equal(report.counts['persistentVolumes'], 2);
  });

  test('in doubt takes an id for that of a volume of the plugin', async () => {
    await using rig = await AuditRig.start({ name: 'pd.csi.storage.gke.io' });
    rig.addVolume('pv-1', '', {
      annotations: { 'pv.kubernetes.io/provisioned-by': 'kubernetes.io/gce-pd' },
      spec: { csi: undefined, gcePersistentDisk: { pdName: 'disk-1' } },
    });
    rig.lists('projects/p/zones/z/disks/disk-1', 'projects/p/zones/z/disks/disk-2');
    const report = await rig.report();
    assert.deepEqual(states(report), ['unexplained projects/p/zones/z/disks/disk-2']);
  });
});

describe('an audit that may not look', () => {
  for (const [resource, plural, rule] of [
    ['PersistentVolumes', 'persistentvolumes', /resources: \["persistentvolumes"\]/],
    ['the journal', 'leases', /resources: \["leases"\]/],
  ] as const) {
    test(`at ${resource} says which rule is missing, and nothing else`, async () => {
      await using rig = await AuditRig.start();
      rig.lists('vol-1');
      const message = `${plural} is forbidden: User "u" cannot list resource "${plural}"`;
      const action = { type: 'status', code: 403, reason: 'Forbidden', message } as const;
      rig.cluster.fault({ match: { resource: plural }, action });
      const { code, stdout, stderr } = await rig.run([]);
      assert.equal(code, 3);
      assert.equal(stdout, '');
      assert.match(stderr, rule);
    });
  }

  test('at a journal that there is none of can be told so, and then says what it takes volumes for', async () => {
    await using rig = await AuditRig.start();
    await rig.put(recordOf(1, { phase: 'delete', handle: 'vol-1' }));
    rig.lists('vol-1');
    const report = await rig.report('--intent-journal=off');
    assert.deepEqual(states(report), ['unexplained vol-1']);
    assert.match(report.notes[0] ?? '', /without an intent journal/);
  });

  test('at a journal, as it is in another namespace, does not call that clean', async () => {
    await using rig = await AuditRig.start();
    rig.lists();
    const report = await rig.report('--leader-election-namespace=default');
    assert.equal(report.code, 3);
    assert.match(report.incomplete[0] ?? '', /namespace default has no intent journal drv-example-com-journal-0/);
  });

  test('as no driver is there says where it looked', async () => {
    await using rig = await AuditRig.start();
    rig.driver.always('GetPluginInfo', { name: '' });
    const { code, stderr } = await rig.run([]);
    assert.equal(code, 3);
    assert.match(stderr, /the driver on \/.*csi\.sock: Error getting CSI driver name: driver name is empty/);
  });
});
