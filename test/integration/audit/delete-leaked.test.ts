import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { IntentRecord } from '../../../src/provision/intent-journal/intent-journal.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure } from '../../support/fakes/recording-driver.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { never, recordOf, uidOf } from '../provision/intent-journal/rig.ts';
import { type AuditReport, AuditRig, driverName } from './rig.ts';

const claimsRef = { group: '', version: 'v1', plural: 'persistentvolumeclaims' };
const secretsRef = { group: '', version: 'v1', plural: 'secrets' };
const classesRef = { group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses' };
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const shardName = { namespace: 'ns', name: 'drv-example-com-journal-0' };

const unexplained = 'no PersistentVolume and no record refers to it';

/** What the sidecar records of a volume whose class names a secret. */
function plan(provisioner?: { name: string; namespace: string }): Record<string, unknown> {
  return {
    driverName,
    claim: { namespace: 'ns', name: 'claim-1', uid: uidOf(1) },
    request: { name: `pvc-${uidOf(1)}`, capacity_range: { required_bytes: '1' }, volume_capabilities: [] },
    secretReferences: provisioner === undefined ? {} : { provisioner },
    ...{ migrated: false, topologySupported: false, mayReschedule: false, fsType: '', spec: {} },
  };
}

function stuckRecord(more: Partial<IntentRecord> = {}): IntentRecord {
  return { ...recordOf(1), plan: plan(), phase: 'stuck', problem: 'for a test', handle: 'vol-1', ...more };
}

/** Of another claim than that of `recordOf(1)`. */
function claimAndName(number: number): Pick<IntentRecord, 'claim' | 'volume'> {
  const { claim, volume } = recordOf(number);
  return { claim, volume };
}

async function started(record = stuckRecord(), ids = ['vol-1']): Promise<AuditRig> {
  const rig = await AuditRig.start();
  await rig.put(record);
  rig.lists(...ids);
  return rig;
}

/** The `--delete` of that volume was refused for this reason, and nothing was deleted. */
async function assertRefused(rig: AuditRig, reason: RegExp, id = 'vol-1'): Promise<void> {
  const { code, stdout, stderr } = await rig.run(['--delete', id, '--yes']);
  assert.match(stdout, /^refused: /m, stderr);
  assert.match(stdout, reason);
  assert.equal(code, 1);
  assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  assert.equal(
    rig.cluster.api.get(leasesRef, shardName)?.metadata.annotations?.['csi-provisioner.journal/discard'],
    undefined,
  );
}

describe('--delete', () => {
  test('deletes the volume that a stuck record names, and has the record discarded', async () => {
    await using rig = await started();
    const { code, stdout } = await rig.run(['--delete', 'vol-1', '--yes']);
    assert.equal(code, 0);
    assert.match(stdout, /^deleted: vol-1: the sidecar discards its record within a minute$/m);
    assert.deepEqual(
      rig.driver.callsOf('DeleteVolume').map(({ request }) => request['volume_id']),
      ['vol-1'],
    );
    const annotations = rig.cluster.api.get(leasesRef, shardName)?.metadata.annotations ?? {};
    assert.equal(annotations['csi-provisioner.journal/discard'], uidOf(1));
    assert.ok(annotations[`csi-provisioner.journal/${uidOf(1)}`] !== undefined, 'the entry is left to the sidecar');
  });

  test('takes a volume that may be kept on purpose only by itself, and with a flag that says what the operator knows', async () => {
    const problem = 'its history is gone';
    await using rig = await started(stuckRecord({ reason: 'unproved', problem }), ['vol-1', 'vol-2']);
    const { findings, code: lookCode } = await rig.report();
    const found = findings.find(({ volumeId }) => volumeId === 'vol-1');
    assert.deepEqual(
      [found?.state, found?.reason, found?.detail, lookCode],
      ['stuck', 'unproved', `unproved: ${problem}`, 2],
    );
    await assertRefused(rig, /somebody may keep it on purpose.*--nobody-keeps-it/);
    const two = await rig.run(['--delete', 'vol-1', 'vol-2', '--yes', '--nobody-keeps-it']);
    assert.match(two.stderr, /--nobody-keeps-it takes one volume of --delete at a time, got 2/);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
    const { code, stdout } = await rig.run(['--delete', 'vol-1', '--yes', '--nobody-keeps-it']);
    assert.match(stdout, /^deleted: vol-1: the sidecar discards its record within a minute$/m);
    assert.equal(code, 0);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });

  test('is taken up by the sidecar, which is not fenced by it', async () => {
    const clock = new ManualClock({ wallMs: Date.now() });
    await using rig = await AuditRig.start({ clock });
    await rig.put(stuckRecord());
    rig.lists('vol-1');
    assert.equal((await rig.run(['--delete=vol-1', '--yes'])).code, 0);
    await eventually(async () => {
      await clock.advance(10_000);
      assert.deepEqual(rig.sidecar.heard, ['discarded 01']);
    });
    assert.equal(rig.cluster.entry(1), undefined);
    const { findings } = await rig.report();
    assert.deepEqual(
      findings.map(({ state, volumeId, detail }) => [state, volumeId, detail]),
      [['unexplained', 'vol-1', unexplained]],
    );
  });

  test('sends the secret of the record, which nobody else sees', async () => {
    await using rig = await started(stuckRecord({ plan: plan({ name: 's', namespace: 'ns' }) }));
    const data = { password: Buffer.from('hush').toString('base64') };
    rig.cluster.api.create(secretsRef, { metadata: { namespace: 'ns', name: 's' }, data });
    const { code, stdout, stderr } = await rig.run(['--delete', 'vol-1', '--yes', '-v=5']);
    assert.equal(code, 0);
    const [call] = rig.driver.callsOf('DeleteVolume');
    assert.deepEqual(call?.request['secrets'], { password: 'hush' });
    assert.match(stderr, /DeleteVolume/, 'the log was on');
    assert.doesNotMatch(stdout + stderr, /hush/);
    assert.ok(!(stdout + stderr).includes(data.password));
  });

  test('takes the secret of the class where the record cannot be understood', async () => {
    await using rig = await started(stuckRecord({ plan: { edited: true } }));
    rig.cluster.api.create(secretsRef, { metadata: { namespace: 'ns', name: 's' }, data: { a: 'Yg==' } });
    const parameters = {
      'csi.storage.k8s.io/provisioner-secret-name': 's',
      'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
    };
    rig.cluster.api.create(classesRef, { metadata: { name: 'fast' }, provisioner: driverName, parameters });
    assert.equal((await rig.run(['--delete', 'vol-1', '--yes'])).code, 0);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume')[0]?.request['secrets'], { a: 'b' });
  });

  test('asks at a terminal, and deletes only for a yes', async () => {
    await using rig = await started();
    const no = await rig.run(['--delete', 'vol-1'], { answer: 'y' });
    assert.match(no.stderr, /will be deleted, with all data on them:\n {2}vol-1\n/);
    assert.equal(no.code, 2);
    const ended = await rig.run(['--delete', 'vol-1'], { answer: '' });
    assert.equal(ended.code, 2);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
    assert.equal((await rig.run(['--delete', 'vol-1'], { answer: 'yes' })).code, 0);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });

  test('without a terminal needs to be told so', async () => {
    await using rig = await started();
    const { code, stderr } = await rig.run(['--delete', 'vol-1']);
    assert.equal(code, 1);
    assert.match(stderr, /add --yes/);
    assert.deepEqual(rig.driver.calls, []);
  });

  test('deletes a volume whose id is only known by the name in it', async () => {
    const id = `pool/pvc-${uidOf(1)}`;
    await using rig = await started({ ...recordOf(1), plan: plan(), phase: 'stuck', problem: 'no id' }, [id]);
    assert.equal((await rig.run(['--delete', id, '--yes'])).code, 0);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });

  test('of a volume that the sidecar is deleting leaves the record to it', async () => {
    await using rig = await started(stuckRecord({ phase: 'delete' }));
    const { code, stdout } = await rig.run(['--delete', 'vol-1', '--yes']);
    assert.equal(code, 0);
    assert.match(stdout, /^deleted: vol-1: the sidecar closes its record$/m);
  });

  test('that the driver refuses is reported, and the record stays', async () => {
    await using rig = await started();
    rig.driver.always('DeleteVolume', new DriverFailure(status.FAILED_PRECONDITION, 'in use'));
    const report = await rig.report('--delete', 'vol-1', '--yes');
    assert.equal(report.code, 2);
    assert.deepEqual(report.deletions, [
      { volumeId: 'vol-1', result: 'failed', detail: 'rpc error: code = FailedPrecondition desc = in use' },
    ]);
    const annotations = rig.cluster.api.get(leasesRef, shardName)?.metadata.annotations ?? {};
    assert.equal(annotations['csi-provisioner.journal/discard'], undefined);
  });
});

describe('--delete whose record cannot be marked', () => {
  test('says that the volume is deleted all the same, and ends with code 2', async () => {
    await using rig = await started();
    const message = 'leases is forbidden: User "u" cannot update resource "leases"';
    const action = { type: 'status', code: 403, reason: 'Forbidden', message } as const;
    rig.cluster.fault({ match: { resource: 'leases', verb: 'update' }, action });
    const { code, stdout } = await rig.run(['--delete', 'vol-1', '--yes']);
    assert.match(
      stdout,
      /^failed: vol-1: the volume is deleted, but its record is still to be discarded: leases is forbid/m,
    );
    assert.equal(code, 2);
    assert.equal(rig.driver.callsOf('DeleteVolume').length, 1);
  });
});

/** The deletions of a report for people. */
function inLines(stdout: string): AuditReport['deletions'] {
  return [...stdout.matchAll(/^(deleted|refused|failed): ([^:]+): (.*)$/gm)].map(
    ([, result = '', volumeId = '', detail = '']) => ({ volumeId, result, detail }),
  );
}

describe('--delete that is interrupted', () => {
  for (const output of ['table', 'json'] as const) {
    test(`says in the ${output} what was deleted before, and that the rest was not`, async () => {
      await using rig = await started(stuckRecord(), ['vol-1', 'vol-2', 'vol-3']);
      await rig.put(
        ...[2, 3].map((number) => ({ ...stuckRecord({ handle: `vol-${number}` }), ...claimAndName(number) })),
      );
      const stop = new AbortController();
      rig.driver.next('DeleteVolume', {}, () => {
        stop.abort(new Error('received SIGINT'));
        return new Promise(() => undefined);
      });
      const flags = ['-o', output, '--delete', 'vol-1', 'vol-2', 'vol-3', '--yes'];
      const { code, stdout, stderr } = await rig.run(flags, { signal: stop.signal });
      assert.equal(code, 2, stderr);
      assert.deepEqual(output === 'table' ? inLines(stdout) : (JSON.parse(stdout) as AuditReport).deletions, [
        { volumeId: 'vol-1', result: 'deleted', detail: 'the sidecar discards its record within a minute' },
        {
          volumeId: 'vol-2',
          result: 'failed',
          detail: 'received SIGINT: rpc error: code = Canceled desc = context canceled',
        },
        { volumeId: 'vol-3', result: 'failed', detail: 'received SIGINT' },
      ]);
      assert.equal(rig.driver.callsOf('DeleteVolume').length, 2);
    });
  }
});

describe('--delete refuses a volume', () => {
  test('that no record names, and then deletes none of the others', async () => {
    await using rig = await started(stuckRecord(), ['vol-1', 'vol-2']);
    const { code, stdout } = await rig.run(['--delete', 'vol-1', 'vol-2', '--yes']);
    assert.equal(code, 1);
    assert.match(stdout, /^refused: vol-2: no record of the journal names it/m);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });

  test('that a PersistentVolume holds by the time it is to be deleted', async () => {
    await using rig = await started();
    let lists = 0;
    rig.driver.always('ListVolumes', () => {
      if (++lists === 2) rig.addVolume('pv-late', 'vol-1'); // PersistentVolumes were read before
      return { entries: [{ volume: { volume_id: 'vol-1' } }] };
    });
    await assertRefused(rig, /PersistentVolume pv-late has its storage or its name/);
  });

  test('whose id a PersistentVolume of another driver has', async () => {
    await using rig = await started();
    rig.addVolume('pv-other', 'vol-1', { spec: { csi: { driver: 'renamed.example.com', volumeHandle: 'vol-1' } } });
    await assertRefused(rig, /PersistentVolume pv-other has its storage or its name/);
  });

  test('whose name a PersistentVolume has', async () => {
    await using rig = await started();
    rig.addVolume(`pvc-${uidOf(1)}`, 'another');
    rig.lists('vol-1', 'another');
    await assertRefused(rig, /has its storage or its name/);
  });

  test('that a claim waits for', async () => {
    await using rig = await AuditRig.start();
    const annotations = { 'volume.kubernetes.io/storage-provisioner': driverName };
    const { metadata } = rig.cluster.api.create(claimsRef, {
      metadata: { namespace: 'ns', name: 'claim-1', annotations },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fast' },
    });
    await rig.put(stuckRecord({ claim: { namespace: 'ns', name: 'claim-1', uid: metadata.uid ?? '' } }));
    rig.lists('vol-1');
    await assertRefused(rig, /claim ns\/claim-1 still needs it/);
  });

  test('that is being made', async () => {
    await using rig = await started(recordOf(1), [`pvc-${uidOf(1)}`]);
    await assertRefused(rig, /the sidecar is creating it/, `pvc-${uidOf(1)}`);
  });

  test('that is attached to a node', async () => {
    await using rig = await started();
    const entry = { volume: { volume_id: 'vol-1' }, status: { published_node_ids: ['n1'] } };
    rig.driver.always('ListVolumes', { entries: [entry] });
    await assertRefused(rig, /attached to 1 node/);
  });

  test('that is attached to a node according to one of two entries', async () => {
    await using rig = await started();
    const entry = { volume: { volume_id: 'vol-1' } };
    const attached = { ...entry, status: { published_node_ids: ['n1', 'n2'] } };
    for (const entries of [
      [entry, attached],
      [attached, entry],
    ]) {
      rig.driver.always('ListVolumes', { entries });
      await assertRefused(rig, /attached to 2 node/);
    }
  });

  test('that several records name, of which one may be in use', async () => {
    await using rig = await started();
    await rig.put(stuckRecord(claimAndName(2)));
    await assertRefused(rig, /several records name it/);
  });

  test('whose secret is gone', async () => {
    await using rig = await started(stuckRecord({ plan: plan({ name: 's', namespace: 'gone' }) }));
    await assertRefused(rig, /its Secret gone\/s is gone/);
  });

  test('whose secret is gone takes that of --secret', async () => {
    await using rig = await started(stuckRecord({ plan: plan({ name: 's', namespace: 'gone' }) }));
    const flags = ['--delete', 'vol-1', '--yes', '--secret', 'ns/other'];
    assert.match((await rig.run(flags)).stdout, /its Secret gone\/s is gone, and so is the one of --secret, ns\/other/);
    rig.cluster.api.create(secretsRef, { metadata: { namespace: 'ns', name: 'other' }, data: { a: 'Yg==' } });
    assert.equal((await rig.run(flags)).code, 0);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume')[0]?.request['secrets'], { a: 'b' });
  });

  test('of which neither record nor class says the secret', async () => {
    await using rig = await started(stuckRecord({ plan: { edited: true } }));
    await assertRefused(rig, /its StorageClass fast is gone/);
  });

  test('whose name is too short to be only its own', async () => {
    const record = recordOf(1);
    record.volume.name = 'pvc-0000';
    await using rig = await started({ ...record, plan: plan(), phase: 'stuck', problem: 'no id' }, ['pool/pvc-0000']);
    await assertRefused(rig, /does not contain the whole UID/, 'pool/pvc-0000');
  });

  test('whose name is in several ids', async () => {
    const ids = ['a', 'b'].map((pool) => `${pool}/pvc-${uidOf(1)}`);
    await using rig = await started({ ...recordOf(1), plan: plan(), phase: 'stuck', problem: 'no id' }, ids);
    await assertRefused(rig, /ids of 2 volumes contain its name/, ids[0]);
  });

  test('whose record is stuck only since the second look', async () => {
    await using rig = await started(stuckRecord({ phase: 'delete' }));
    let lists = 0;
    rig.driver.always('ListVolumes', async () => {
      if (++lists === 1) await rig.put(stuckRecord()); // the journal was read before
      return { entries: [{ volume: { volume_id: 'vol-1' } }] };
    });
    await assertRefused(rig, /its record has changed between the two looks/);
  });

  test('whose record was closed while somebody thought about the question', async () => {
    await using rig = await started();
    let lists = 0;
    rig.driver.always('ListVolumes', async () => {
      if (++lists === 2) await rig.sidecar.journal.removeNow(uidOf(1), never);
      return { entries: [{ volume: { volume_id: 'vol-1' } }] };
    });
    await assertRefused(rig, /its record has changed in the meantime/);
  });
});
