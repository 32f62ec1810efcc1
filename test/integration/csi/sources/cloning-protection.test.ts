/** The cloning protection goes once its claim is deleted and no clone is pending. */
import assert from 'node:assert/strict';
import { describe, test, type TestContext } from 'node:test';
import { systemClock } from '../../../../src/base/clock.ts';
import { silentLogger, type Logger } from '../../../../src/base/logger.ts';
import type { Recorder } from '../../../../src/kube/events/event-recorder.ts';
import type { WorkQueue } from '../../../../src/kube/queue/work-queue.ts';
import {
  CloningProtectionController,
  type CloningProtectionOptions,
} from '../../../../src/csi/sources/cloning-protection.ts';
import type { SandboxObject } from '../../../../sandbox/api/client.ts';
import { eventually } from '../../../support/eventually.ts';
import { awaitingLogger, claimsRef, SandboxApi } from '../../../support/sandbox-api.ts';

const finalizer = 'provisioner.storage.kubernetes.io/cloning-protection';
const source = { namespace: 'ns1', name: 'src' };
const cloneSpec = { dataSource: { kind: 'PersistentVolumeClaim', name: 'src' } };

/** Runs the controller until the test ends. */
function runController(
  context: TestContext,
  api: SandboxApi,
  logger: Logger = silentLogger,
  options: Partial<Pick<CloningProtectionOptions, 'recorder' | 'plannedSources' | 'queueMetrics'>> = {},
): void {
  const stop = new AbortController();
  const { client, claims } = api;
  const controller = new CloningProtectionController({
    client,
    ...options,
    claims,
    workers: 1,
    retryStartMs: 10,
    retryMaxMs: 20,
    clock: systemClock,
    logger,
  });
  const running = controller.run({ stop: stop.signal, abort: stop.signal });
  context.after(async () => {
    stop.abort();
    await running;
  });
}

/** A source under deletion, held by our finalizer and maybe others. */
function addDeletedSource(api: SandboxApi, name = 'src', others: string[] = []): void {
  api.addClaim({ name, finalizers: [...others, finalizer] }, {}, 'Bound');
  api.own.delete(claimsRef, { namespace: 'ns1', name });
}

function isLetGo(claim: SandboxObject | undefined): boolean {
  return claim?.metadata.finalizers?.includes(finalizer) !== true;
}

const removing = 'Error syncing claim, trying again';

describe('CloningProtectionController', () => {
  test('a deleted source without pending clones is let go at once', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    api.addClaim({ name: 'clone' }, cloneSpec, 'Bound');
    await api.cached((claims) => claims.get('ns1/clone')?.status?.phase === 'Bound');
    runController(context, api);
    await api.until(claimsRef, source, isLetGo);
    assert.equal(api.server.requestLog.entries({ verb: 'update', resource: 'persistentvolumeclaims' }).length, 1);
  });

  test('a source that is deleted later is let go then, its other finalizers stay', async (context) => {
    await using api = await SandboxApi.start();
    api.addClaim({ name: 'src', finalizers: ['x.io/a', finalizer, 'x.io/b'] }, {}, 'Bound');
    runController(context, api);
    api.own.delete(claimsRef, source);
    await api.until(claimsRef, source, isLetGo);
    assert.deepEqual(
      api.own.get(claimsRef, source)?.metadata.finalizers?.filter((name) => name.startsWith('x.io')),
      ['x.io/a', 'x.io/b'],
    );
  });

  test('a source that is not deleted keeps its protection', async (context) => {
    await using api = await SandboxApi.start();
    api.addClaim({ name: 'live', finalizers: [finalizer] }, {}, 'Bound');
    addDeletedSource(api);
    await api.cached((claims) => claims.size === 2);
    runController(context, api);
    await api.until(claimsRef, source, isLetGo);
    assert.ok(api.own.get(claimsRef, { namespace: 'ns1', name: 'live' })?.metadata.finalizers?.includes(finalizer));
  });

  test('a pending clone holds its source until it is bound, whoever makes it', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    api.addClaim({ name: 'clone' }, { ...cloneSpec, storageClassName: 'of-another-driver' }, 'Pending');
    await api.cached((claims) => claims.size === 2);
    const { logger, seen } = awaitingLogger(removing, 3);
    runController(context, api, logger);
    await seen;
    assert.ok(api.own.get(claimsRef, source)?.metadata.finalizers?.includes(finalizer));
    assert.deepEqual(api.server.requestLog.entries({ verb: 'update', resource: 'persistentvolumeclaims' }), []);
    api.setPhase('clone', 'Bound');
    await api.until(claimsRef, source, isLetGo);
  });

  test('an event on the source names the claim that holds it', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    api.addClaim({ name: 'clone' }, cloneSpec, 'Pending');
    await api.cached((claims) => claims.size === 2);
    const uid = api.own.get(claimsRef, source)?.metadata.uid ?? '';
    const open = [{ claimUid: 'u', claim: 'ns2/gone', source: { handling: 'clone', ...source, uid } } as const];
    const recorded: string[] = [];
    const both = Promise.withResolvers<undefined>();
    const recorder: Recorder = {
      event({ name }, type, reason, message, options) {
        recorded.push([name, type, reason, options?.once, message.split(',')[0]].join(' '));
        open.length = 0; // its record is closed: the pending claim is left
        if (recorded.length === 2) both.resolve(undefined);
      },
    };
    const { logger, seen } = awaitingLogger(removing, 4);
    runController(context, api, logger, { recorder, plannedSources: () => open });
    await Promise.all([both.promise, seen]);
    assert.deepEqual(recorded, [
      'src Normal CloneProtectionWaiting true Waiting until the volume of claim ns2/gone',
      'src Normal CloneProtectionWaiting true Waiting until claim ns1/clone',
    ]);
  });

  test('a volume in progress holds its source although its claim is gone, until the record is closed', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    await api.cached((claims) => claims.size === 1);
    const uid = api.own.get(claimsRef, source)?.metadata.uid ?? '';
    const open = [{ claimUid: 'u', claim: 'ns1/gone', source: { handling: 'clone', ...source, uid } } as const];
    const { logger, seen } = awaitingLogger(removing, 3);
    runController(context, api, logger, { plannedSources: () => open });
    await seen;
    assert.ok(!isLetGo(api.own.get(claimsRef, source)));
    assert.deepEqual(api.server.requestLog.entries({ verb: 'update', resource: 'persistentvolumeclaims' }), []);
    open.length = 0;
    await api.until(claimsRef, source, isLetGo);
  });

  test('a record that is opened while the source is read holds it', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    await api.cached((claims) => claims.size === 1);
    const uid = api.own.get(claimsRef, source)?.metadata.uid ?? '';
    const isRead = (): boolean => api.server.requestLog.entries({ path: /persistentvolumeclaims\/src$/ }).length > 0;
    const open = [{ claimUid: 'u', claim: 'ns1/gone', source: { handling: 'clone', ...source, uid } } as const];
    const { logger, seen } = awaitingLogger(removing);
    runController(context, api, logger, { plannedSources: () => (isRead() ? open : []) });
    await seen;
    assert.ok(isRead());
    assert.ok(!isLetGo(api.own.get(claimsRef, source)));
  });

  test('a claim recreated with the name of a deleted source keeps its finalizer', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    api.addClaim({ name: 'clone' }, cloneSpec, 'Pending');
    await api.cached((claims) => claims.size === 2);
    const { logger, seen } = awaitingLogger(removing);
    let queue: WorkQueue | undefined;
    const ignore = (): void => undefined;
    const observe = (made: WorkQueue): void => void (queue = made);
    const queueMetrics = { added: ignore, retried: ignore, waited: ignore, worked: ignore, observe };
    runController(context, api, logger, { queueMetrics });
    await seen;
    const former = api.own.get(claimsRef, source);
    assert.ok(former);
    api.own.update(claimsRef, { ...former, metadata: { ...former.metadata, finalizers: [] } });
    const { metadata } = api.addClaim({ name: 'src', finalizers: [finalizer] }, {}, 'Bound');
    await api.cached((claims) => claims.get('ns1/src')?.metadata.uid === metadata.uid);
    api.setPhase('clone', 'Bound');
    addDeletedSource(api, 'other');
    await api.until(claimsRef, { namespace: 'ns1', name: 'other' }, isLetGo);
    await eventually(() => assert.equal(queue?.stateOf('ns1/src').state, 'absent', 'the retry of the former claim'));
    assert.ok(!isLetGo(api.own.get(claimsRef, source)));
  });

  test('a volume made from an earlier claim of the name holds nothing', async (context) => {
    await using api = await SandboxApi.start();
    addDeletedSource(api);
    const open = [
      { claimUid: 'u', claim: 'ns1/gone', source: { handling: 'clone', ...source, uid: 'earlier' } } as const,
    ];
    runController(context, api, undefined, { plannedSources: () => open });
    await api.until(claimsRef, source, isLetGo);
  });

  const harmless: { name: string; namespace?: string; spec: object; phase: string }[] = [
    { name: 'a pending clone in another namespace', namespace: 'ns2', spec: cloneSpec, phase: 'Pending' },
    { name: 'a clone without phase', spec: cloneSpec, phase: '' },
    { name: 'a lost clone', spec: cloneSpec, phase: 'Lost' },
    {
      name: 'a pending clone of another claim',
      spec: { dataSource: { ...cloneSpec.dataSource, name: 'x' } },
      phase: 'Pending',
    },
  ];
  for (const { name, namespace = 'ns1', spec, phase } of harmless) {
    test(`${name} holds nothing`, async (context) => {
      await using api = await SandboxApi.start();
      addDeletedSource(api);
      api.addClaim({ name: 'clone', namespace }, spec, phase);
      await api.cached((claims) => claims.get(`${namespace}/clone`)?.status?.phase === phase);
      const { logger, seen } = awaitingLogger(removing);
      runController(context, api, logger);
      const removed = api.until(claimsRef, source, isLetGo).then(() => 'removed');
      assert.equal(await Promise.race([removed, seen.then(() => 'held')]), 'removed');
    });
  }

  test('a conflict is read again', async (context) => {
    await using api = await SandboxApi.start();
    const fault = api.server.faults.add({
      match: { verb: 'update', resource: 'persistentvolumeclaims' },
      action: { type: 'conflictOnce' },
      times: 1,
    });
    addDeletedSource(api);
    runController(context, api);
    await api.until(claimsRef, source, isLetGo);
    assert.equal(fault.hits, 1);
  });

  test('without the right to update claims it comes back after a pause, with an event on the claim', async (context) => {
    await using api = await SandboxApi.start();
    const fault = api.server.faults.add({
      match: { verb: 'update', resource: 'persistentvolumeclaims' },
      action: { type: 'status', code: 403, reason: 'Forbidden', message: 'claims are not for you' },
      times: 2,
    });
    addDeletedSource(api);
    const events: unknown[] = [];
    const recorder: Recorder = { event: (about, ...event) => events.push([about.name, ...event]) };
    runController(context, api, undefined, { recorder });
    await api.until(claimsRef, source, isLetGo);
    assert.equal(fault.hits, 2);
    const message = 'The cloning protection could not be removed, the claim stays until it is: claims are not for you';
    const event = ['src', 'Warning', 'CloneProtectionFailed', message];
    assert.deepEqual(events, [event, event]);
  });
});
