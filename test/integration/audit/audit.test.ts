import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordOf, uidOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, states } from './rig.ts';

const stuck = { phase: 'stuck', problem: 'the secret is gone' } as const;

describe('an audit', () => {
  test('finds nothing where each volume has its PersistentVolume, and then looks once', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-1', 'vol-1');
    rig.lists('vol-1');
    const report = await rig.report();
    assert.equal(report.code, 0);
    assert.deepEqual(report.findings, []);
    assert.equal(report.looks, 1);
    assert.equal(report.counts['inUse'], 1);
  });

  test('finds what is lost, leaked, stuck, in the making, unexplained and foreign', async () => {
    await using rig = await AuditRig.start();
    await rig.put(
      { ...recordOf(1), ...stuck, handle: 'vol-left' },
      { ...recordOf(2), ...stuck },
      recordOf(3),
      recordOf(4, { phase: 'delete', handle: 'vol-unwanted' }),
    );
    rig.addVolume('pv-good', 'vol-good');
    rig.addVolume('pv-lost', 'vol-lost');
    rig.addVolume('pv-manual', 'vol-manual', { annotations: {} });
    rig.addVolume('pv-other', 'vol-else', { spec: { csi: { driver: 'other.example.com', volumeHandle: 'vol-else' } } });
    rig.lists('vol-good', 'vol-left', 'vol-manual', 'vol-else', 'vol-unwanted');
    const report = await rig.report();
    assert.equal(report.code, 2);
    assert.equal(report.looks, 2);
    assert.deepEqual(states(report), [
      'lost vol-lost',
      'leaked vol-left',
      'stuck -',
      'unexplained vol-else',
      'being-deleted vol-unwanted',
      'being-made -',
      'foreign vol-manual',
    ]);
    assert.equal(report.counts['persistentVolumes'], 3);
    const leaked = report.findings[1];
    assert.equal(leaked?.record, uidOf(1));
    assert.equal(leaked.claim, 'ns/claim-1');
    assert.equal(leaked.detail, 'undecidable: the secret is gone');
  });

  test('finds the volume of a record without an id by its name, as a part of the id', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck }, recordOf(2), { ...recordOf(3), ...stuck });
    const id = `pool/ns#pvc-${uidOf(1)}#`;
    rig.lists(id, `pvc-${uidOf(2)}`, `clone-of-pvc-${uidOf(3)}`);
    const report = await rig.report();
    assert.deepEqual(states(report), [
      `leaked ${id}`,
      'stuck -',
      `candidate clone-of-pvc-${uidOf(3)}`,
      `being-made pvc-${uidOf(2)}`,
    ]);
  });

  test('says nothing that only one of the looks sees', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.addVolume('pv-late', 'vol-late');
    const volume = (volume_id: string) => ({ volume: { volume_id } });
    rig.driver.next(
      'ListVolumes',
      { entries: [volume('vol-new')] },
      { entries: [volume('vol-late'), volume('vol-newer')] },
    );
    const report = await rig.report();
    assert.deepEqual(states(report), ['lost vol-lost']);
    assert.equal(report.counts['unsettled'], 3);
  });

  test('waits for the pause before it looks again', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists();
    const { stdout, stderr } = await rig.run(['--second-look=20ms']);
    assert.match(stderr, /Connecting to the driver/, 'plain lines where nobody watches');
    assert.doesNotMatch(stderr, /\r/);
    assert.match(stdout, /^lost +vol-lost +pv-lost +ns\/claim-of-pv-lost /m);
    assert.match(stdout, /two looks/);
    assert.equal(rig.driver.callsOf('ListVolumes').length, 2);
  });

  test('looks once where that is enough', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists();
    const report = await rig.report('--second-look=0');
    assert.equal(report.looks, 1);
    assert.equal(report.code, 2);
  });

  test('reports two PersistentVolumes with one handle, and counts their storage once', async () => {
    await using rig = await AuditRig.start();
    for (const name of ['pv-a', 'pv-b']) rig.addVolume(name, 'vol-1');
    for (const name of ['pv-c', 'pv-d']) rig.addVolume(name, 'vol-gone');
    rig.lists('vol-1');
    const report = await rig.report();
    assert.deepEqual(
      report.findings.map(({ state, persistentVolumes }) => [state, persistentVolumes?.join(' ')]),
      [
        ['lost', 'pv-c'],
        ['lost', 'pv-d'],
        ['shared', 'pv-a pv-b'],
        ['shared', 'pv-c pv-d'],
      ],
    );
    assert.equal(report.counts['driverVolumes'], 1);
  });

  test('does not call a volume lost that was made by hand and is only not listed', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-manual', 'fs-1:/share', { annotations: {} });
    rig.lists();
    const report = await rig.report();
    assert.deepEqual(states(report), ['unverified fs-1:/share']);
    assert.equal(report.code, 0);
  });

  test('escapes what a terminal would act on', async () => {
    await using rig = await AuditRig.start();
    rig.lists('vol-\u001b[2J\n\u202e');
    const { stdout } = await rig.run([]);
    assert.match(stdout, /^unexplained +vol-\\u001b\[2J\\u000a\\u202e /m);
  });
});

describe('an audit of a record that a PersistentVolume or nobody has', () => {
  test('says that a PersistentVolume has the storage of a stuck record', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck, handle: 'vol-1' });
    rig.addVolume('pv-1', 'vol-1');
    rig.lists('vol-1');
    const [finding, ...others] = (await rig.report()).findings;
    assert.deepEqual(others, []);
    assert.equal(finding?.state, 'stuck');
    assert.match(finding.detail, /PersistentVolume pv-1 has its storage/);
  });

  test('reports records of a journal that is a copy, and never as leaked by this cluster alone', async () => {
    await using rig = await AuditRig.start();
    await rig.put(recordOf(1, { handle: 'vol-1', phase: 'delete' }));
    const lease = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
    const name = { namespace: 'ns', name: 'drv-example-com-journal-0' };
    const copy = structuredClone(rig.cluster.api.get(lease, name));
    assert.ok(copy);
    await rig.sidecar.stop();
    rig.cluster.api.delete(lease, name);
    const { annotations = {} } = copy.metadata;
    rig.cluster.api.create(lease, { ...copy, metadata: { ...name, annotations } });
    rig.lists('vol-1');
    const report = await rig.report();
    assert.deepEqual(states(report), ['leaked vol-1']);
    assert.match(report.findings[0]?.detail ?? '', /^restored: the journal is a copy/);
    const { code, stdout } = await rig.run(['--delete', 'vol-1', '--yes']);
    assert.equal(code, 1);
    assert.match(stdout, /^refused: vol-1: .*Another cluster may use the volume$/m);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });

  test('says which entries of the journal it cannot read, and that the audit is not complete', async () => {
    await using rig = await AuditRig.start();
    await rig.put(recordOf(1));
    const lease = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
    const name = { namespace: 'ns', name: 'drv-example-com-journal-0' };
    const shard = structuredClone(rig.cluster.api.get(lease, name))!;
    shard.metadata.annotations = { ...shard.metadata.annotations, 'csi-provisioner.journal/edited': '{}' };
    rig.cluster.api.update(lease, shard);
    rig.lists();
    const report = await rig.report();
    assert.match(report.incomplete[0] ?? '', /^drv-example-com-journal-0\/edited of the intent journal cannot be read/);
    assert.equal(report.code, 3);
  });
});
