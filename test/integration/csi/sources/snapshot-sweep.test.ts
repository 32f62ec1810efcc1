/** Left-over protection of snapshots is swept. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { systemClock } from '../../../../src/base/clock.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import type { Lister } from '../../../../src/kube/cache/store.ts';
import {
  runSnapshotSweep,
  type SnapshotSweepOptions,
  snapshotsInUse,
} from '../../../../src/csi/sources/snapshot-sweep.ts';
import type { OpenSource } from '../../../../src/csi/sources/data-source.ts';
import type { Recorder } from '../../../../src/kube/events/event-recorder.ts';
import type { PersistentVolumeClaim } from '../../../../src/provision/objects.ts';
import type { FaultMatch } from '../../../../sandbox/api/faults.ts';
import { eventually } from '../../../support/eventually.ts';
import { awaitingLogger, SandboxApi, snapshotsRef } from '../../../support/sandbox-api.ts';
import { makeClaim } from '../../../support/csi-rig.ts';

const finalizer = 'provisioner.storage.kubernetes.io/volumesnapshot-as-source-protection';
const group = 'snapshot.storage.k8s.io';
const source = { kind: 'VolumeSnapshot', name: 'snap', apiGroup: group };
const snap = { namespace: 'ns1', name: 'snap' };

function runSweep(
  context: TestContext,
  api: SandboxApi,
  options: Partial<Pick<SnapshotSweepOptions, 'logger' | 'claims' | 'plannedSources' | 'recorder'>> = {},
): void {
  const stop = new AbortController();
  const { client, transport } = api;
  const running = runSnapshotSweep(
    { client, transport, claims: api.claims, intervalMs: 20, clock: systemClock, logger: silentLogger, ...options },
    stop.signal,
  );
  context.after(async () => {
    stop.abort();
    await running;
  });
}

function isProtected(api: SandboxApi, name = snap): boolean {
  return api.own.get(snapshotsRef, name)?.metadata.finalizers?.includes(finalizer) === true;
}

/** Resolves when two orphans, the second of which is found only by a later sweep, have lost their protection: a whole sweep has passed. */
async function sweptTwice(api: SandboxApi): Promise<void> {
  for (const name of ['orphan-1', 'orphan-2']) {
    api.addSnapshot({ name, finalizers: [finalizer] });
    const orphan = { namespace: 'ns1', name };
    await api.until(snapshotsRef, orphan, () => !isProtected(api, orphan));
  }
}

const snapshotUpdates: FaultMatch = { verb: 'update', resource: 'volumesnapshots' };

describe('runSnapshotSweep', () => {
  test('an orphan loses its protection, and nothing else', async (context) => {
    await using api = await SandboxApi.start();
    api.addSnapshot({ name: 'snap', finalizers: ['x.io/a', finalizer] });
    runSweep(context, api);
    await api.until(snapshotsRef, snap, () => !isProtected(api));
    assert.deepEqual(api.own.get(snapshotsRef, snap)?.metadata.finalizers, ['x.io/a']);
  });

  test('a snapshot that a pending claim names keeps it until the claim is bound', async (context) => {
    await using api = await SandboxApi.start();
    api.addClaim({ name: 'c1' }, { dataSource: source }, 'Pending');
    await api.cached((claims) => claims.size === 1);
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    runSweep(context, api);
    await sweptTwice(api);
    assert.ok(isProtected(api));
    api.setPhase('c1', 'Bound');
    await api.until(snapshotsRef, snap, () => !isProtected(api));
  });

  test('a snapshot that is orphaned later is found by a later sweep', async (context) => {
    await using api = await SandboxApi.start();
    runSweep(context, api);
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    await api.until(snapshotsRef, snap, () => !isProtected(api));
  });

  test('a snapshot that a restore names while the sweep is under way keeps its protection', async (context) => {
    await using api = await SandboxApi.start();
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    // the claim comes while the sweep reads the snapshot
    const isRead = (): boolean => api.server.requestLog.entries({ path: /volumesnapshots\/snap$/ }).length > 0;
    const claim = { ...makeClaim({ dataSource: source }), status: { phase: 'Pending' } };
    const list = (): PersistentVolumeClaim[] => (isRead() ? [claim] : []);
    runSweep(context, api, { claims: { get: () => undefined, list } as unknown as Lister<PersistentVolumeClaim> });
    await eventually(() => assert.ok(isRead()));
    await sweptTwice(api);
    assert.ok(isProtected(api));
  });

  test('a snapshot of a volume in progress keeps it although the claim is gone, until the record is closed', async (context) => {
    await using api = await SandboxApi.start();
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    const open = [{ claimUid: 'u', claim: 'ns1/c', source: { handling: 'snapshot', ...snap } } as const];
    runSweep(context, api, { plannedSources: () => open });
    await sweptTwice(api);
    assert.ok(isProtected(api));
    open.length = 0;
    await api.until(snapshotsRef, snap, () => !isProtected(api));
  });

  test('an event on a snapshot under deletion names the claim that holds it', async (context) => {
    await using api = await SandboxApi.start();
    api.addClaim({ name: 'c1' }, { dataSource: source }, 'Pending');
    await api.cached((claims) => claims.size === 1);
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    const live = { namespace: 'ns1', name: 'live' };
    api.addSnapshot({ name: 'live', finalizers: [finalizer] });
    api.own.delete(snapshotsRef, snap);
    const open = [
      { claimUid: 'u', claim: 'ns1/other', source: { handling: 'snapshot', ...live } },
      { claimUid: 'v', claim: 'ns2/gone', source: { handling: 'snapshot', ...snap } },
    ] satisfies OpenSource[];
    const recorded = new Set<string>();
    const both = Promise.withResolvers<undefined>();
    const recorder: Recorder = {
      event({ kind, apiVersion, name }, type, reason, message, options) {
        recorded.add([apiVersion, kind, name, type, reason, options?.once, message.split(',')[0]].join(' '));
        open.length = 1; // its record is closed: the pending claim is left
        if (recorded.size === 2) both.resolve(undefined);
      },
    };
    runSweep(context, api, { recorder, plannedSources: () => open });
    await both.promise;
    assert.deepEqual(
      [...recorded],
      [
        `${group}/v1 VolumeSnapshot snap Normal SnapshotProtectionWaiting true Waiting until the volume of claim ns2/gone`,
        `${group}/v1 VolumeSnapshot snap Normal SnapshotProtectionWaiting true Waiting until claim ns1/c1`,
      ],
    );
  });

  test('a record that is opened while the sweep reads the snapshot keeps its protection', async (context) => {
    await using api = await SandboxApi.start();
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    const isRead = (): boolean => api.server.requestLog.entries({ path: /volumesnapshots\/snap$/ }).length > 0;
    const open = [{ claimUid: 'u', claim: 'ns1/c', source: { handling: 'snapshot', ...snap } } as const];
    runSweep(context, api, { plannedSources: () => (isRead() ? open : []) });
    await eventually(() => assert.ok(isRead()));
    await sweptTwice(api);
    assert.ok(isProtected(api));
  });

  for (const [code, reason] of [
    [409, 'Conflict'],
    [403, 'Forbidden'],
    [500, 'InternalError'],
    [404, 'NotFound'],
  ] as const) {
    test(`a ${reason} is left to a later sweep`, async (context) => {
      await using api = await SandboxApi.start();
      const action = { type: 'status', code, reason } as const;
      const fault = api.server.faults.add({ match: snapshotUpdates, action, times: 6 });
      api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
      runSweep(context, api);
      await api.until(snapshotsRef, snap, () => !isProtected(api));
      assert.equal(fault.hits, 6);
    });
  }

  test('without permission to list it ends, and nothing is watched', async () => {
    await using api = await SandboxApi.start();
    api.addSnapshot({ name: 'snap', finalizers: [finalizer] });
    const match = { verb: 'list', resource: 'volumesnapshots' };
    api.server.faults.add({ match, action: { type: 'status', code: 403, reason: 'Forbidden' } });
    const { client, transport, claims } = api;
    const { logger, seen } = awaitingLogger('Not permitted to list VolumeSnapshots: left-over protection is not swept');
    const options = { client, transport, claims, intervalMs: 20, clock: systemClock, logger };
    await runSnapshotSweep(options, new AbortController().signal);
    await seen;
    assert.equal(
      api.server.requestLog.entries({ resource: 'volumesnapshots' }).filter(({ method }) => method === 'GET').length,
      1,
    );
    assert.ok(isProtected(api));
  });
});

describe('snapshotsInUse', () => {
  const cases: { name: string; spec: Parameters<typeof makeClaim>[0]; phase?: string; keys: string[] }[] = [
    { name: 'a pending claim by dataSource', spec: { dataSource: source }, keys: ['ns1/snap'] },
    { name: 'a claim without phase', spec: { dataSource: source }, phase: '', keys: ['ns1/snap'] },
    { name: 'a bound claim', spec: { dataSource: source }, phase: 'Bound', keys: [] },
    { name: 'a lost claim', spec: { dataSource: source }, phase: 'Lost', keys: [] },
    {
      name: 'a source without group',
      spec: { dataSource: { kind: 'VolumeSnapshot', name: 'snap' } },
      keys: ['ns1/snap'],
    },
    { name: 'a source of another group', spec: { dataSource: { ...source, apiGroup: 'example.com' } }, keys: [] },
    { name: 'a source of another kind', spec: { dataSource: { ...source, kind: 'PersistentVolumeClaim' } }, keys: [] },
    {
      name: 'dataSourceRef into another namespace',
      spec: { dataSourceRef: { ...source, namespace: 'ns2' } },
      keys: ['ns2/snap'],
    },
    { name: 'dataSourceRef without namespace', spec: { dataSourceRef: source }, keys: ['ns1/snap'] },
    {
      name: 'dataSourceRef with an empty namespace',
      spec: { dataSourceRef: { ...source, namespace: '' } },
      keys: ['ns1/snap'],
    },
    {
      name: 'dataSource before dataSourceRef',
      spec: { dataSource: source, dataSourceRef: { ...source, namespace: 'ns2' } },
      keys: ['ns1/snap'],
    },
    { name: 'no source', spec: {}, keys: [] },
  ];
  for (const { name, spec, phase = 'Pending', keys } of cases) {
    test(`${name}: ${keys.join() || 'nothing'}`, () => {
      const claim: PersistentVolumeClaim = { ...makeClaim(spec), status: { phase } };
      assert.deepEqual([...snapshotsInUse([claim])], keys);
    });
  }
});
