/** Volumes whose ids mention a claim, without being named by its record alone: never said to be leaked, and never deleted. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { recordOf, uidOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, driverName, states } from './rig.ts';

const stuck = { phase: 'stuck', problem: 'the secret is gone' } as const;

async function assertRefused(rig: AuditRig, id: string, reason: RegExp): Promise<void> {
  const { code, stdout } = await rig.run([`--delete=${id}`, '--yes', '--nobody-keeps-it']);
  assert.match(stdout, reason);
  assert.equal(code, 1);
  assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
}

describe('a volume whose id contains the UID of a claim', () => {
  test('is a candidate of the stuck record, which names it', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    const id = `vol-pvc-${uidOf(1)}`;
    rig.lists(id);
    const report = await rig.report();
    assert.deepEqual(states(report), ['stuck -', `candidate ${id}`]);
    const [record, candidate] = report.findings;
    assert.equal(record?.detail, `undecidable: the secret is gone; these volumes may be its storage: ${id}`);
    assert.equal(candidate?.detail, 'it may belong to the record of claim ns/claim-1, which is in phase stuck');
    assert.deepEqual([candidate.record, candidate.claim], [uidOf(1), 'ns/claim-1']);
    await assertRefused(rig, id, /its id only mentions a claim or a volume/);
  });

  test('is one of an open record, whose volume may be in the making', async () => {
    await using rig = await AuditRig.start();
    await rig.put(recordOf(1));
    rig.lists(uidOf(1).replaceAll('-', '').toUpperCase());
    const report = await rig.report();
    assert.deepEqual(states(report), [`candidate ${uidOf(1).replaceAll('-', '').toUpperCase()}`, 'being-made -']);
    assert.equal(report.code, 0);
  });

  test('is one of a PersistentVolume that has another name and other storage', async () => {
    await using rig = await AuditRig.start();
    const claimRef = { namespace: 'ns', name: 'moved', uid: uidOf(1) };
    const csi = { driver: driverName, volumeHandle: 'vol-1' };
    rig.addVolume('imported', 'vol-1', { spec: { csi, claimRef } });
    rig.lists('vol-1', `vol-${uidOf(1)}`);
    const report = await rig.report();
    assert.deepEqual(states(report), [`candidate vol-${uidOf(1)}`]);
    assert.deepEqual(report.findings[0]?.persistentVolumes, ['imported']);
    await assertRefused(rig, `vol-${uidOf(1)}`, /only mentions a claim/);
  });

  test('is not leaked where it also contains that of another claim', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck }, recordOf(2));
    const id = `pool/pvc-${uidOf(1)}/of-${uidOf(2)}`;
    rig.lists(id);
    const report = await rig.report();
    assert.deepEqual(states(report), ['stuck -', `candidate ${id}`, 'being-made -']);
    assert.match(
      report.findings[1]?.detail ?? '',
      /claim-1, which is in phase stuck, or to the record of claim ns\/claim-2/,
    );
    await assertRefused(rig, id, /only mentions a claim/);
  });

  test('is not leaked where a PersistentVolume has the claim, and other storage', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    const claimRef = { namespace: 'ns', name: 'claim-1', uid: uidOf(1) };
    const csi = { driver: driverName, volumeHandle: 'vol-1' };
    rig.addVolume('imported', 'vol-1', { spec: { csi, claimRef } });
    rig.lists('vol-1', `pvc-${uidOf(1)}`);
    const report = await rig.report();
    assert.deepEqual(states(report), ['stuck -', `candidate pvc-${uidOf(1)}`]);
    await assertRefused(rig, `pvc-${uidOf(1)}`, /only mentions a claim/);
  });

  test('is one of a record that is stuck as unproved, and is not deleted even if nobody keeps it', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), phase: 'stuck', reason: 'unproved', problem: 'its history is gone' });
    rig.lists(`vol-${uidOf(1)}`);
    assert.deepEqual(states(await rig.report()), ['stuck -', `candidate vol-${uidOf(1)}`]);
    await assertRefused(rig, `vol-${uidOf(1)}`, /only mentions a claim/);
  });

  test('keeps the one of the very name from being deleted', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    const id = `pool/pvc-${uidOf(1)}`;
    rig.lists(id, `mirror-of-pvc-${uidOf(1)}`);
    assert.deepEqual(states(await rig.report()), [`leaked ${id}`, `candidate mirror-of-pvc-${uidOf(1)}`]);
    await assertRefused(rig, id, /the ids of 2 volumes contain its name/);
  });
});

describe('a volume whose context tells the name of the volume', () => {
  test('is a candidate of the record of that name', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    const volume_context = { 'csi.storage.k8s.io/pv/name': `pvc-${uidOf(1)}` };
    rig.driver.always('ListVolumes', { entries: [{ volume: { volume_id: 'vol-7', volume_context } }] });
    assert.deepEqual(states(await rig.report()), ['stuck -', 'candidate vol-7']);
    await assertRefused(rig, 'vol-7', /only mentions a claim/);
  });
});

describe('shortened names', () => {
  const short = (n: number, name: string) => {
    const { volume, ...rest } = recordOf(n);
    return { ...rest, volume: { ...volume, name } };
  };

  test('of which one begins as another are told apart', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...short(1, 'pvc-1'), ...stuck }, short(2, 'pvc-12'));
    rig.lists('vol-pvc-12', 'pvc-1');
    const report = await rig.report();
    assert.deepEqual(states(report), ['leaked pvc-1', 'candidate vol-pvc-12', 'being-made -']);
    assert.match(report.findings[1]?.detail ?? '', /^it may belong to the record of claim ns\/claim-2, /);
    await assertRefused(rig, 'pvc-1', /does not contain the whole UID of the claim/);
  });

  test('that are the same for two claims leak nothing', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...short(1, 'pvc-1'), ...stuck }, short(2, 'pvc-1'));
    rig.lists('pvc-1');
    assert.deepEqual(states(await rig.report()), ['stuck -', 'candidate pvc-1', 'being-made -']);
    await assertRefused(rig, 'pvc-1', /only mentions a claim/);
  });
});
