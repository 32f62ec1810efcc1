import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { DeadlineError } from '../../../src/base/abort.ts';
import { ProvisionError } from '../../../src/provision/provisioner.ts';
import { CountingClock } from './counting-clock.ts';
import { F, pvProtection, resource, Rig } from './rig.ts';
import { madeVolume } from './scripted-provisioner.ts';

/** A call that ends when its signal aborts. */
function endless(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

describe('the author of writes', () => {
  for (const { title, controller, want } of [
    { title: 'the name of the provisioner', controller: {}, want: 'drv' },
    { title: 'the field manager given', controller: { fieldManager: 'my-program' }, want: 'my-program' },
  ]) {
    test(`is ${title}`, async () => {
      await using rig = await Rig.prepare({ controller });
      rig.addClass();
      rig.addClaim();
      rig.startOnly();
      await rig.until('a volume', () => rig.volumes.length === 1);
      await rig.stop();
      const writes = rig.wire.requests.filter(({ method }) => method !== 'GET');
      assert.ok(writes.length >= 2, 'the volume and its events');
      for (const { path } of writes) assert.equal(new URL(path, rig.url).searchParams.get('fieldManager'), want);
    });
  }
});

describe('stopping', () => {
  test('the claim under way is finished, those that wait are left to the next run', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    for (const name of ['a', 'b', 'c', 'd']) rig.addClaim(name);
    const gate = Promise.withResolvers<undefined>();
    rig.provisioner.provisionSteps.push(async ({ volumeName }, { signal }) => {
      await gate.promise;
      assert.equal(signal.aborted, false);
      return madeVolume(volumeName);
    });
    rig.startOnly();
    await rig.until('the first call', () => rig.provisioner.provisions.length === 1);
    assert.equal(rig.controller.queueLengths.claims, 3);
    rig.beginStop();
    gate.resolve(undefined);
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningSucceeded']);
    assert.deepEqual(rig.metrics.totals, { pt: 1 });
  });

  test('a failure at the end is an event and not tried again', async () => {
    await using rig = await Rig.prepare({ limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }) });
    rig.addClass();
    rig.addClaim();
    const gate = Promise.withResolvers<never>();
    rig.provisioner.provisionSteps.push(() => gate.promise);
    rig.startOnly();
    await rig.until('the first call', () => rig.provisioner.provisions.length === 1);
    rig.beginStop();
    gate.reject(new ProvisionError('no room', { state: 'finished' }));
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningFailed']);
  });

  test('the second signal aborts what is under way, and the run ends', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    rig.addClaim();
    rig.addVolume('v', 'Released');
    rig.provisioner.otherwiseProvision = (_options, { signal }) => endless(signal);
    rig.provisioner.otherwiseDelete = (_volume, { signal }) => endless(signal);
    rig.startOnly();
    await rig.until('both calls', () => rig.provisioner.provisions.length + rig.provisioner.deletions.length === 2);
    rig.beginStop();
    rig.abort();
    await rig.stop();
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.equal(rig.provisioner.deletions.length, 1);
    assert.equal(rig.volumes.length, 1);
    assert.deepEqual(rig.metrics.totals, { pf: 1, df: 1 });
  });

  test('nothing is worked on when the caches never fill', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    rig.addClaim();
    const stall = rig.fault({ match: { resource: 'storageclasses' }, action: { type: 'watchStall' } });
    rig.startOnly();
    await rig.until('the classes to be asked for', () => stall.hits > 0);
    await rig.until('the claim', () => rig.controller.queueLengths.claims === 1);
    await rig.stop();
    assert.deepEqual(rig.provisioner.provisions, []);
  });

  test('a controller runs only once', async () => {
    await using rig = await Rig.prepare();
    await rig.start();
    await rig.stop();
    await assert.rejects(rig.controller.run(rig.signals), /only once/);
  });

  test('no timer and no listener is left after a run with retries, resyncs and timeouts', async () => {
    const clock = new CountingClock();
    await using rig = await Rig.prepare({
      clock,
      limiter: new ExponentialLimiter({ baseMs: 5, maxMs: 60_000 }),
      controller: {
        saveLimiter: new ExponentialLimiter({ baseMs: 5, maxMs: 1000 }),
        provisionTimeoutMs: 60_000,
        deletionTimeoutMs: 60_000,
      },
    });
    rig.addClass();
    for (const name of ['a', 'b', 'c']) rig.addClaim(name);
    rig.addVolume('v', 'Released');
    rig.refuse('create', 'persistentvolumes', { code: 500, reason: 'InternalError', message: 'boom', times: 3 });
    rig.provisioner.provisionSteps.push(new ProvisionError('no room', { state: 'finished' }));
    rig.provisioner.deleteSteps.push(new Error('busy'));
    rig.addClaim('waits', { storageClassName: 'missing' });
    await rig.start();
    await rig.until('the volumes', () => rig.volumes.length === 3 && rig.volume('v') === undefined);
    assert.ok(clock.pending > 0, 'the count counts');
    assert.ok(getEventListeners(rig.signals.stop, 'abort').length > 0);
    await rig.stop();
    assert.equal(clock.pending, 0);
    assert.equal(getEventListeners(rig.signals.stop, 'abort').length, 0);
    assert.equal(getEventListeners(rig.signals.abort, 'abort').length, 0);
  });
});

describe('deadlines', () => {
  test('a time limit covers the call of a provisioner', async () => {
    await using rig = await Rig.prepare({ controller: { provisionTimeoutMs: 20 } });
    rig.addClass();
    const { uid } = rig.addClaim().metadata;
    rig.provisioner.otherwiseProvision = (_options, { signal }) => endless(signal);
    rig.startOnly();
    await rig.synced(uid);
    await rig.stop();
    const { signal } = rig.provisioner.provisions[0] ?? {};
    assert.ok(signal?.reason instanceof DeadlineError);
    assert.deepEqual(rig.reasons, ['Provisioning', 'ProvisioningFailed']);
    assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
  });

  test('a time limit covers the qualifier, too', async () => {
    await using rig = await Rig.prepare({
      controller: { provisionTimeoutMs: 20 },
      methods: { shouldProvision: (_claim, { signal }) => endless(signal) },
    });
    rig.addClass();
    const { uid } = rig.addClaim().metadata;
    rig.startOnly();
    await rig.synced(uid);
    await rig.stop();
    assert.equal(rig.limiter.syncs(uid)[0]?.end, 'retry');
    assert.deepEqual(rig.metrics.totals, { pf: 1 });
    assert.deepEqual(rig.events, []);
  });

  test('a time limit covers the sync of a volume', async () => {
    await using rig = await Rig.prepare({ controller: { deletionTimeoutMs: 20 } });
    rig.addVolume('v', 'Released');
    rig.provisioner.otherwiseDelete = (_volume, { signal }) => endless(signal);
    rig.startOnly();
    await rig.synced('v');
    await rig.stop();
    assert.deepEqual(rig.reasons, ['VolumeFailedDelete']);
    assert.equal(rig.limiter.syncs('v')[0]?.end, 'retry');
  });
});

describe('work in parallel', () => {
  test('as many claims are worked on at once as there are workers', async () => {
    await using rig = await Rig.prepare({ controller: { workers: 3 } });
    rig.addClass();
    for (const name of ['a', 'b', 'c', 'd']) rig.addClaim(name);
    const gate = Promise.withResolvers<undefined>();
    rig.provisioner.otherwiseProvision = async ({ volumeName }) => {
      await gate.promise;
      return madeVolume(volumeName);
    };
    rig.startOnly();
    await rig.until('three calls', () => rig.provisioner.provisions.length === 3);
    assert.equal(rig.controller.queueLengths.claims, 1);
    gate.resolve(undefined);
    await rig.until('all volumes', () => rig.volumes.length === 4);
    assert.equal(rig.provisioner.provisions.length, 4);
  });
});

describe('what the API server offers', () => {
  test('a server without streaming lists is listed and then watched', async () => {
    await using rig = await Rig.prepare({ api: { watchList: false } });
    rig.addClass();
    rig.addClaim();
    await rig.start();
    rig.addClaim('b');
    await rig.until('both volumes', () => rig.volumes.length === 2);
    await rig.stop();
    assert.deepEqual(rig.metrics.totals, { pt: 2 });
    const reads = rig.wire.requests.filter(
      ({ method, path }) => method === 'GET' && path.startsWith('/api/v1/persistentvolumeclaims'),
    );
    const list = reads.find(({ path }) => !path.includes('watch=true'));
    assert.match(list?.path ?? '', /limit=500/);
    assert.match(list?.path ?? '', /resourceVersion=0/);
    assert.match(reads.at(-1)?.path ?? '', /watch=true.*resourceVersion=\d+/);
    assert.doesNotMatch(reads.at(-1)?.path ?? '', /sendInitialEvents/);
  });
});

describe('resync', () => {
  test('after the resync period everything that is not settled is synced again', async () => {
    await using rig = await Rig.prepare({ controller: { resyncMs: 1000 }, methods: { shouldDelete: () => false } });
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const keys = ['a', 'b'].map((name) => rig.addClaim(name).metadata.uid);
    for (const name of ['v', 'w']) keys.push(rig.addVolume(name, 'Released').metadata.name);
    const startedMs = performance.now();
    await rig.start();
    for (const key of keys) await rig.synced(key, 2);
    assert.ok(performance.now() - startedMs > 900);
    assert.deepEqual(rig.writes, []);
  });

  test('a cluster in which nothing happens is not written to, and nothing of it is queued', async () => {
    await using rig = await Rig.prepare({ controller: { addFinalizer: true, resyncMs: 1000, workers: 4 } });
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const keys: string[] = [];
    for (let n = 0; n < 50; n++) keys.push(...addBoundPair(rig, n));
    const waiting = rig.addClaim('zz-waiting').metadata.uid; // last in lists, too
    rig.startOnly();
    await rig.synced(waiting, 3);
    await rig.stop();
    for (const key of keys) assert.deepEqual(rig.limiter.syncs(key), []);
    assert.deepEqual(rig.writes, []);
    assert.deepEqual(rig.events, []);
    assert.deepEqual(rig.metrics.totals, {});
    assert.equal(rig.server.requestLog.entries({ user: 'system:anonymous', verb: 'get' }).length, 0);
  });

  test('changes of a bound pair that nobody reads wake nobody; of an unbound claim every change does', async () => {
    await using rig = await Rig.prepare({ controller: { addFinalizer: true } });
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    const [uid = '', volume = ''] = addBoundPair(rig, 1);
    const unbound = rig.addClaim('unbound').metadata.uid;
    await rig.start();
    rig.touchClaim('bound-1');
    rig.touchVolume(volume);
    rig.touchClaim('unbound');
    await rig.settle();
    assert.equal(rig.limiter.syncs(uid).length, 0);
    assert.equal(rig.limiter.syncs(volume).length, 0);
    assert.equal(rig.limiter.syncs(unbound).length, 2);
  });
});

/** A claim and a volume bound to each other; returns their queue keys. */
function addBoundPair(rig: Rig, n: number): string[] {
  const name = `bound-${n}`;
  const { uid } = rig.addClaim(name, { spec: { volumeName: `pvc-${n}` } }).metadata;
  const claim = structuredClone(rig.api.get(resource.claims, { namespace: 'ns', name }))!;
  claim['status'] = { phase: 'Bound' };
  rig.api.updateStatus(resource.claims, claim);
  const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'ns', name, uid };
  rig.addVolume(`pvc-${n}`, 'Bound', { finalizers: [pvProtection, F], spec: { claimRef } });
  return [uid, `pvc-${n}`];
}
