/** The audit of `--audit-interval`: the whole program between a real driver socket and a real API server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { describe, test } from 'node:test';
import { status } from '@grpc/grpc-js';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure, type RecordedCall } from '../../support/fakes/recording-driver.ts';
import { Program } from '../../support/program.ts';
import { freePort } from '../../support/free-ports.ts';
import { recordOf, uidOf } from '../provision/intent-journal/rig.ts';
import { AuditRig, driverName, type RigOptions } from './rig.ts';

const stuck = { phase: 'stuck', problem: 'the secret is gone', handle: 'vol-left' } as const;
const volumesRef = { group: '', version: 'v1', plural: 'persistentvolumes' };

interface Sidecar extends AsyncDisposable {
  program: Program;
  /** Value of each state; empty: the metric is absent. */
  counts: () => Promise<Record<string, number>>;
  metric: (name: string) => Promise<number | undefined>;
  page: () => Promise<string>;
}

/** The rig's driver and cluster, once its own journal has ended. */
async function sidecar(rig: AuditRig, flags: readonly string[] = [], random?: () => number): Promise<Sidecar> {
  await rig.sidecar.stop();
  const port = await freePort();
  const program = new Program({
    socketPath: rig.driver.socketPath,
    apiUrl: rig.cluster.url,
    flags: ['--audit-interval=100ms', `--http-endpoint=127.0.0.1:${port}`, '--status-page', ...flags],
    environment: { POD_NAMESPACE: 'ns', NODE_NAME: 'n1' },
    ...(random && { random }),
  });
  const samples = async (): Promise<[string, Record<string, string>, number][]> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return text.split('\n').flatMap((line) => {
      const [, name = '', labels = '', value = ''] = /^(audit_\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      const state = /state="(\w+)"/.exec(labels)?.[1] ?? '';
      return name === '' ? [] : [[name, { state }, Number(value)] as [string, Record<string, string>, number]];
    });
  };
  return {
    program,
    counts: async () =>
      Object.fromEntries(
        (await samples()).flatMap(([name, { state = '' }, value]) =>
          name === 'audit_volumes' ? [[state, value]] : [],
        ),
      ),
    metric: async (name) => (await samples()).find(([each]) => each === name)?.[2],
    page: async () => await (await fetch(`http://127.0.0.1:${port}/status`)).text(),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

const nothing = { lost: 0, leaked: 0, stuck: 0, candidate: 0, unexplained: 0 };
const started = (options: RigOptions = {}): Promise<AuditRig> => AuditRig.start(options);
const leasesRef = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

function heldBy(holderIdentity: string): SandboxObject {
  const now = new Date().toISOString().replace('Z', '000Z');
  return {
    metadata: { namespace: 'ns', name: driverName.replaceAll('.', '-') },
    spec: { holderIdentity, leaseDurationSeconds: 3600, acquireTime: now, renewTime: now },
  };
}
const requests = (rig: AuditRig, verb: string): number =>
  rig.cluster.server.requestLog.entries({ resource: 'persistentvolumes', verb }).length;

describe('the audit of the sidecar', () => {
  test('counts what is lost, leaked, stuck and unexplained, and deletes nothing', async () => {
    await using rig = await started();
    await rig.put(
      { ...recordOf(1), ...stuck },
      { ...recordOf(2), phase: 'stuck', reason: 'unproved', problem: 'its history is gone', handle: 'vol-kept' },
      { ...recordOf(3), ...stuck, handle: 'vol-gone' },
    );
    rig.addVolume('pv-good', 'vol-good');
    rig.addVolume('pv-lost', 'vol-lost');
    rig.addVolume('pv-manual', 'vol-manual', { annotations: {} });
    rig.addVolume('pv-else', 'vol-else', { spec: { csi: { driver: 'other.example.com', volumeHandle: 'vol-else' } } });
    rig.lists('vol-good', 'vol-left', 'vol-manual', 'vol-kept', 'vol-by-hand', `copy-${uidOf(1)}`);
    await using audited = await sidecar(rig);
    await eventually(async () => {
      assert.deepEqual(await audited.counts(), {
        lost: 1,
        leaked: 1,
        stuck: 2,
        candidate: 1,
        unexplained: 1,
      });
    });
    const seconds = await audited.metric('audit_last_run_duration_seconds');
    assert.ok(seconds !== undefined && seconds > 0);
    assert.equal(await audited.metric('audit_last_run_complete'), 1);
    const completeAt = (await audited.metric('audit_last_complete_run_timestamp_seconds')) ?? 0;
    assert.ok(Math.abs(completeAt - Date.now() / 1000) < 60);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });

  test('is shown on the status page, with the command to copy', async () => {
    await using rig = await started();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists('vol-<b>');
    await using audited = await sidecar(rig);
    await eventually(async () => {
      const text = await audited.page();
      assert.match(text, /<b>1<\/b> lost/);
      assert.match(text, /<b class="bad">lost<\/b><td>vol-lost<td>ns\/claim-of-pv-lost/);
      assert.match(text, /<code>kubectl describe pv pv-lost<\/code>/);
      assert.match(text, /unexplained<td>vol-&lt;b&gt;/);
      assert.doesNotMatch(text, /vol-<b>/);
    });
  });

  for (const { title, flags, pod } of [
    { title: 'the leader of the driver', flags: ['--leader-election'], pod: `--driver=${driverName}` },
    { title: 'this Pod without an election', flags: [], pod: `--pod=ns/${hostname()}` },
  ]) {
    test(`has the kubectl plugin run the command to delete in ${title}`, async () => {
      await using rig = await started();
      await rig.put({ ...recordOf(1), ...stuck });
      rig.lists('vol-left');
      await using audited = await sidecar(rig, flags);
      await eventually(async () => {
        const [, command] = /<code>(kubectl csi audit [^<]*)<\/code>/.exec(await audited.page()) ?? [];
        assert.equal(command, `kubectl csi audit --delete=vol-left ${pod}`);
      });
    });
  }

  test('lists no PersistentVolumes, and reads only those that the driver does not list', async () => {
    await using rig = await started();
    for (let number = 0; number < 50; number++) rig.addVolume(`pv-${number}`, `vol-${number}`);
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists(...Array.from({ length: 50 }, (_, number) => `vol-${number}`));
    await using audited = await sidecar(rig);
    await eventually(async () => assert.deepEqual(await audited.counts(), { ...nothing, lost: 1 }));
    const before = { lists: requests(rig, 'list'), calls: rig.driver.callsOf('ListVolumes').length };
    await eventually(() => assert.ok(rig.driver.callsOf('ListVolumes').length >= before.calls + 3));
    const entries = rig.cluster.server.requestLog.entries({ resource: 'persistentvolumes', verb: 'list' });
    const more = entries.slice(before.lists);
    assert.ok(more.length > 0);
    // one for each list of the driver: what was found before needs no second look
    assert.ok(more.length <= rig.driver.callsOf('ListVolumes').length - before.calls + 1);
  });

  test('reads all PersistentVolumes at once where many are not listed', async () => {
    await using rig = await started();
    for (let number = 0; number < 150; number++) rig.addVolume(`pv-${number}`, `vol-${number}`);
    rig.lists();
    await using audited = await sidecar(rig);
    await eventually(async () => assert.deepEqual(await audited.counts(), { ...nothing, lost: 150 }));
    assert.ok(requests(rig, 'list') < 30);
  });

  test('calls nothing lost or leaked that only one look sees', async () => {
    await using rig = await started();
    rig.addVolume('pv-late', 'vol-late');
    let lists = 0;
    rig.driver.always('ListVolumes', () => {
      const isOdd = lists++ % 2 === 0;
      return { entries: [{ volume: { volume_id: isOdd ? `vol-new-${lists}` : 'vol-late' } }] };
    });
    await using audited = await sidecar(rig);
    await eventually(async () => {
      assert.ok(lists >= 6);
      assert.deepEqual(await audited.counts(), nothing);
    });
  });

  test('leaves out a volume that is saved while it runs', async () => {
    await using rig = await started();
    rig.driver.always('ListVolumes', () => {
      if (rig.cluster.api.get(volumesRef, { name: 'pv-new' }) === undefined) rig.addVolume('pv-new', 'vol-new');
      return { entries: [{ volume: { volume_id: 'vol-new' } }] };
    });
    await using audited = await sidecar(rig);
    await eventually(async () => assert.deepEqual(await audited.counts(), nothing));
  });

  test('keeps the last result where the driver fails, and says why', async () => {
    await using rig = await started();
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists();
    await using audited = await sidecar(rig);
    await eventually(async () => assert.deepEqual(await audited.counts(), { ...nothing, lost: 1 }));
    rig.driver.always('ListVolumes', new DriverFailure(status.INTERNAL, 'the backend is down'));
    await audited.program.logged('The audit could not be carried out, trying again after the interval');
    const completeAt = await audited.metric('audit_last_complete_run_timestamp_seconds');
    assert.equal(await audited.metric('audit_last_run_complete'), 0);
    const unchecked = (await audited.metric('audit_unchecked_seconds')) ?? 0;
    const calls = rig.driver.callsOf('ListVolumes').length;
    await eventually(() => assert.ok(rig.driver.callsOf('ListVolumes').length > calls + 1));
    assert.ok(((await audited.metric('audit_unchecked_seconds')) ?? 0) > unchecked);
    assert.equal(await audited.metric('audit_last_complete_run_timestamp_seconds'), completeAt);
    assert.deepEqual(await audited.counts(), { ...nothing, lost: 1 });
    assert.match(await audited.page(), /<p class="bad">the driver does not list its volumes: .*the backend is down/);
  });

  test('gives up a list that never ends, and goes on with the work', async () => {
    await using rig = await started();
    rig.driver.always('ListVolumes', () => ({ entries: [{ volume: { volume_id: 'vol-1' } }], next_token: 'again' }));
    await using audited = await sidecar(rig);
    const line = await audited.program.logged('The audit could not be carried out');
    assert.match(line, /never ends: 100 pages in a row had nothing new/);
    assert.deepEqual(await audited.counts(), {});
  });

  test('gives up a driver that lists ever more volumes before they fill the memory', async () => {
    await using rig = await started();
    let count = 0;
    rig.driver.always('ListVolumes', () => ({
      entries: Array.from({ length: 5000 }, () => ({ volume: { volume_id: `made-up-${count++}` } })),
      next_token: String(count),
    }));
    await using audited = await sidecar(rig);
    const line = await audited.program.logged('The audit could not be carried out');
    assert.match(line, /lists more than 100000 volumes that no PersistentVolume has/);
  });

  test('is not carried out for a driver without LIST_VOLUMES, which is said once', async () => {
    await using rig = await started({ controller: ['CREATE_DELETE_VOLUME', 'GET_VOLUME'] });
    rig.addVolume('pv-lost', 'vol-lost');
    let runs = 0; // each begins with a random pause
    await using audited = await sidecar(rig, ['--audit-interval=5ms'], () => {
      runs++;
      return 0;
    });
    const text = 'does not support LIST_VOLUMES, no audit is carried out';
    await audited.program.logged(text);
    await eventually(async () => assert.match(await audited.page(), /does not list its volumes: there is no audit/));
    const after = runs;
    await eventually(() => assert.ok(runs >= after + 5));
    assert.equal(audited.program.lines.filter((line) => line.includes(text)).length, 1);
    assert.deepEqual(await audited.counts(), {});
    for (const name of ['last_complete_run_timestamp_seconds', 'last_run_complete', 'unchecked_seconds'])
      assert.equal(await audited.metric(`audit_${name}`), undefined);
    assert.deepEqual(rig.driver.callsOf('ControllerGetVolume'), []);
  });

  test('never overlaps itself', async () => {
    await using rig = await started();
    let [open, most] = [0, 0];
    const answers: (() => void)[] = [];
    rig.driver.always('ListVolumes', async () => {
      most = Math.max(most, ++open);
      await new Promise<void>((resolve) => answers.push(resolve));
      open--;
      return { entries: [] };
    });
    await using _audited = await sidecar(rig, ['--audit-interval=1ms']);
    for (let run = 0; run < 4; run++) {
      await eventually(() => assert.ok(answers.length > 0));
      answers.shift()?.();
    }
    assert.equal(most, 1);
    await eventually(() => assert.ok(answers.length > 0));
    for (const answer of answers) answer();
  });

  test('says from the start how often it is to be carried out, and since when nothing was checked', async () => {
    await using rig = await started();
    await using audited = await sidecar(rig, ['--audit-interval=6h']);
    await eventually(async () => assert.equal(await audited.metric('audit_interval_seconds'), 6 * 3600));
    const unchecked = (await audited.metric('audit_unchecked_seconds')) ?? 0;
    await eventually(async () => assert.ok(((await audited.metric('audit_unchecked_seconds')) ?? 0) > unchecked));
    assert.equal(await audited.metric('audit_last_run_complete'), undefined);
  });

  test('is that of the leader alone, and ends with its lease in the middle of a list: nothing is reported or deleted', async () => {
    await using rig = await started();
    await rig.put({ ...recordOf(1), ...stuck });
    rig.addVolume('pv-lost', 'vol-lost');
    rig.lists('vol-left');
    const lease = rig.cluster.api.create(leasesRef, heldBy('another'));
    const flags = ['--leader-election', '--leader-election-retry-period=50ms'];
    await using standby = await sidecar(rig, flags);
    await eventually(async () => assert.match(await standby.page(), /Standby: this instance waits/));
    assert.equal(await standby.metric('audit_interval_seconds'), undefined);
    rig.cluster.api.delete(leasesRef, lease.metadata);
    await eventually(async () => assert.deepEqual(await standby.counts(), { ...nothing, lost: 1, leaked: 1 }));
    const [asked, cancelled] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    rig.driver.always('ListVolumes', async (call: RecordedCall) => {
      asked.resolve(undefined);
      await once(call.cancelled, 'abort');
      cancelled.resolve(undefined);
      return { entries: [] };
    });
    await asked.promise;
    const reports = (): number => standby.program.lines.filter((line) => line.includes('has compared')).length;
    const before = reports();
    const held = rig.cluster.api.get(leasesRef, lease.metadata);
    rig.cluster.api.update(leasesRef, { ...held, spec: heldBy('another')['spec'] } as SandboxObject);
    await cancelled.promise;
    assert.equal((await standby.program.ended).code, 1);
    assert.equal(reports(), before);
    assert.deepEqual(rig.driver.callsOf('DeleteVolume'), []);
  });

  test('ends with the process, also in the middle of a list', async () => {
    await using rig = await started();
    const asked = Promise.withResolvers<undefined>();
    rig.driver.always('ListVolumes', async ({ cancelled }: RecordedCall) => {
      asked.resolve(undefined);
      await once(cancelled, 'abort');
      return { entries: [{ volume: { volume_id: 'vol-x' } }] };
    });
    await using audited = await sidecar(rig);
    await asked.promise;
    audited.program.signal('SIGTERM');
    assert.equal((await audited.program.ended).code, 0);
    assert.ok(!audited.program.lines.some((line) => line.includes('The audit has compared the volumes')));
  });
});

describe('the audit of a node', () => {
  test('calls lost what the driver of the node does not list, and reads nothing of other nodes', async () => {
    await using rig = await started();
    rig.driver.always('NodeGetInfo', { node_id: 'n1', accessible_topology: { segments: { host: 'n1' } } });
    const on = (node: string, volumeHandle: string): object => ({
      csi: { driver: driverName, volumeHandle },
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'host', operator: 'In', values: [node] }] }] },
      },
    });
    rig.addVolume('pv-here', 'vol-here', { spec: on('n1', 'vol-here') });
    rig.addVolume('pv-lost', 'vol-lost', { spec: on('n1', 'vol-lost') });
    for (let number = 0; number < 120; number++)
      rig.addVolume(`pv-${number}`, '', { spec: on('n2', `there-${number}`) });
    rig.lists('vol-here');
    await using audited = await sidecar(rig, ['--node-deployment']);
    await eventually(async () => assert.deepEqual(await audited.counts(), { ...nothing, lost: 1 }));
    const names = rig.cluster.server.requestLog
      .entries({ resource: 'persistentvolumes', verb: 'list' })
      .flatMap(({ query }) => /metadata.name(?:=|%3D)([\w-]+)/.exec(JSON.stringify(query))?.[1] ?? []);
    assert.deepEqual([...new Set(names)], ['pv-lost']);
  });
});
