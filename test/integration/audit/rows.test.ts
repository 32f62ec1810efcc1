/** What each row says besides its state: age, size, condition, and the command to copy. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import { DriverFailure, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { recordOf, uidOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, driverName } from './rig.ts';

const stuck = { phase: 'stuck', problem: 'the secret is gone' } as const;
const plan = {
  driverName,
  claim: { namespace: 'ns', name: 'claim-1', uid: uidOf(1) },
  request: { name: `pvc-${uidOf(1)}`, capacity_range: { required_bytes: '1' }, volume_capabilities: [] },
  secretReferences: {},
  ...{ migrated: false, topologySupported: false, mayReschedule: false, fsType: '', spec: {} },
};
const GiB = 1024 ** 3;

describe('a row of the audit', () => {
  test('has the size that the list of the driver tells, and the age of the record', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck, handle: 'vol-1' });
    const volume = (volume_id: string, bytes: string) => ({ volume: { volume_id, capacity_bytes: bytes } });
    rig.driver.always('ListVolumes', { entries: [volume('vol-1', String(3 * GiB)), volume('vol-2', '0')] });
    const { findings } = await rig.report();
    assert.deepEqual(
      findings.map(({ state, capacityBytes, ageSeconds }) => [state, capacityBytes, ageSeconds === null]),
      [
        ['leaked', 3 * GiB, false],
        ['unexplained', null, true],
      ],
    );
    const since = Date.parse(recordOf(1).createdAt);
    assert.ok(Math.abs(findings[0]!.ageSeconds! - (Date.now() - since) / 1000) < 60);
    const { stdout } = await rig.run([]);
    assert.match(stdout, /^STATE +VOLUME +NAME +CLAIM +AGE +SIZE +DETAIL$/m);
    assert.match(stdout, /^leaked +vol-1 +pvc-\S+ +ns\/claim-1 +\d+d +3Gi +undecidable: the secret is gone$/m);
    assert.match(stdout, /^unexplained +vol-2 +- +- +unknown +unknown +no PersistentVolume/m);
  });

  test('has the size that the driver tells of the single volume, where its list does not', async () => {
    await using rig = await AuditRig.start({ controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES', 'GET_VOLUME'] });
    rig.lists('vol-1', 'vol-2');
    rig.driver.always('ControllerGetVolume', ({ request }: RecordedCall) => {
      if (request['volume_id'] === 'vol-2') return new DriverFailure(status.INTERNAL, 'busy');
      return { volume: { volume_id: 'vol-1', capacity_bytes: String(GiB) }, status: {} };
    });
    const { findings } = await rig.report('--second-look=0');
    assert.deepEqual(
      findings.map(({ volumeId, capacityBytes }) => [volumeId, capacityBytes]),
      [
        ['vol-1', GiB],
        ['vol-2', null],
      ],
    );
  });

  test('asks for the size of no more than a hundred volumes', async () => {
    await using rig = await AuditRig.start({ controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES', 'GET_VOLUME'] });
    rig.lists(...Array.from({ length: 300 }, (_, index) => `vol-${index}`));
    rig.driver.always('ControllerGetVolume', { volume: { volume_id: 'x', capacity_bytes: '1' }, status: {} });
    const { findings } = await rig.report('--second-look=0');
    assert.equal(findings.length, 300);
    assert.equal(rig.driver.callsOf('ControllerGetVolume').length, 100);
  });

  test('has the age and the size of the PersistentVolume whose storage is lost', async () => {
    await using rig = await AuditRig.start();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists();
    const [finding] = (await rig.report()).findings;
    assert.equal(finding?.capacityBytes, GiB);
    assert.ok(finding.ageSeconds !== null && finding.ageSeconds >= 0 && finding.ageSeconds < 600);
  });
});

test('a driver of CSI 1.12 that reports the condition of volumes is audited, without it', async () => {
  const controller = ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES', 11];
  await using rig = await AuditRig.start({ controller });
  rig.addVolume('pv-1', 'vol-1');
  rig.driver.always('ListVolumes', { entries: [{ volume: { volume_id: 'vol-1' }, status: {} }] });
  assert.deepEqual((await rig.report()).findings, []);
});

describe('the command of a row', () => {
  const commands = async (rig: AuditRig, ...flags: string[]): Promise<[string, string | null][]> =>
    (await rig.report(...flags)).findings.map(({ state, command }) => [state, command]);
  const flagsOf = (rig: AuditRig): string =>
    `--csi-address=${rig.driver.socketPath} --master=${rig.cluster.url} --leader-election-namespace=ns`;

  test('of a leaked volume deletes it, as it was copied', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck, plan, handle: "pool/it's 1" });
    rig.lists("pool/it's 1");
    const [[state, command] = []] = await commands(rig);
    assert.equal(state, 'leaked');
    const id = String.raw`'pool/it'\''s 1'`;
    assert.equal(command, `csi-provisioner audit --delete=${id} ${flagsOf(rig)}`);
    const [, ...words] = execFileSync('/bin/sh', ['-c', `printf '%s\\n' ${command}`], { encoding: 'utf8' })
      .trimEnd()
      .split('\n');
    const { code, stdout } = await rig.run([...words.slice(1), '--yes']);
    assert.match(stdout, /^deleted: pool\/it's 1: /m);
    assert.equal(code, 0);
  });

  test('of a leaked volume that must not be deleted shows its record', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    rig.lists(`pool/pvc-${uidOf(1)}`, `copy-of-pvc-${uidOf(1)}`);
    const list = `csi-provisioner journal list ${flagsOf(rig)}`;
    assert.deepEqual(await commands(rig), [
      ['leaked', list],
      ['candidate', list],
    ]);
  });

  test('is that of the kubectl plugin where it is called by it, with the flags that find the same sidecar', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck, plan, handle: 'vol-left' }, recordOf(2));
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists('vol-left');
    const plugin = ['--plugin', '--plugin-flag=--driver=d.example.com', '--plugin-flag=--context=prod'];
    assert.deepEqual(await commands(rig, ...plugin), [
      ['lost', 'kubectl --context=prod describe pv pv-lost'],
      ['leaked', 'kubectl csi audit --delete=vol-left --driver=d.example.com --context=prod'],
      ['being-made', 'kubectl csi why ns/claim-2 --context=prod'],
    ]);
  });

  test('of a volume that may be kept on purpose deletes nothing, and discards no record', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), phase: 'stuck', reason: 'unproved', problem: 'why', handle: 'vol-1' });
    rig.lists('vol-1');
    const list = `csi-provisioner journal list ${flagsOf(rig)}`;
    assert.deepEqual(await commands(rig), [['stuck', list]]);
    rig.lists();
    assert.deepEqual(await commands(rig), [['stuck', list]]);
  });

  test('of a stuck record discards it only where it certainly has no storage', async () => {
    await using rig = await AuditRig.start();
    await rig.put({ ...recordOf(1), ...stuck });
    rig.lists();
    const list = `csi-provisioner journal list ${flagsOf(rig)}`;
    const discard = `csi-provisioner journal discard --uid=${uidOf(1)} ${flagsOf(rig)}`;
    assert.deepEqual(await commands(rig), [['stuck', discard]]);
    rig.lists('fs-0123'); // of a driver whose ids say nothing
    assert.deepEqual((await commands(rig))[0], ['stuck', list]);
    rig.lists(`vol-${uidOf(1)}`);
    assert.deepEqual((await commands(rig))[0], ['stuck', list]);
    rig.addVolume('pv-1', 'vol-1');
    rig.lists('vol-1', 'vol-1'); // others may be missing
    assert.deepEqual((await commands(rig))[0], ['stuck', list]);
  });

  test('is there for all that an operator may look into, and not for what is fine', async () => {
    await using rig = await AuditRig.start();
    await rig.put(recordOf(1), recordOf(2, { phase: 'delete', handle: 'vol-unwanted' }));
    rig.addVolume('pv-lost', 'vol-lost');
    for (const name of ['pv-a', 'pv-b']) rig.addVolume(name, 'vol-shared');
    rig.addVolume('pv-manual', 'vol-manual', { annotations: {} });
    rig.addVolume('pv-missing', 'vol-missing', { annotations: {} });
    rig.lists('vol-shared', 'vol-manual', 'vol-unwanted', 'vol-x', 'vol-\u001b[2J');
    const kubectl = `kubectl --server=${rig.cluster.url}`;
    assert.deepEqual(await commands(rig), [
      ['lost', `${kubectl} describe pv pv-lost`],
      ['unverified', `${kubectl} describe pv pv-missing`],
      ['shared', `${kubectl} describe pv pv-a pv-b`],
      ['unexplained', null],
      ['unexplained', `${kubectl} get pv -o yaml | grep -n -F -e vol-x`],
      ['being-deleted', null],
      ['being-made', `csi-provisioner why ns/claim-1 --master=${rig.cluster.url}`],
      ['foreign', null],
    ]);
    const { stdout } = await rig.run([]);
    assert.match(stdout, /^lost .*\n {4}kubectl --server=\S+ describe pv pv-lost\n/m);
    assert.ok(!stdout.includes('\u001b'));
  });
});
