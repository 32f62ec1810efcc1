import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect } from '../../../src/kube/client/connect.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { LeaderElector } from '../../../src/kube/election/leader-elector.ts';
import { resource, Rig } from './rig.ts';

const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

/** Runs the rig's controller as a leader whose work goes through a guarded transport. */
function lead(rig: Rig, stop: AbortSignal) {
  const electionTransport = connect({ master: rig.url, environment: {} });
  const elector = new LeaderElector({
    transport: electionTransport,
    guarded: rig.transport,
    namespace: 'default',
    name: 'drv',
    identity: 'first',
    leaseDurationMs: 3000,
    renewDeadlineMs: 2000,
    retryPeriodMs: 100,
  });
  return elector
    .run({ stop, work: (lost) => rig.controller.run({ stop, abort: lost }) })
    .finally(() => electionTransport[Symbol.asyncDispose]());
}

/** Somebody else writes himself into the Lease. */
function takeOver(rig: Rig): void {
  const lease = structuredClone(rig.api.get(leases, { namespace: 'default', name: 'drv' }))!;
  Object.assign(lease['spec'] as object, { holderIdentity: 'second', renewTime: new Date().toISOString() });
  rig.api.update(leases, lease);
}

describe('a controller whose lease is lost', () => {
  test('ends by itself, also when it has nothing to do', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    rig.addClaim();
    const leading = lead(rig, new AbortController().signal);
    await rig.until('the volume', () => rig.volumes.length === 1);
    takeOver(rig);
    assert.equal(await leading, 'lost');
  });

  test('leaves the storage of an unsaved volume to whoever leads now', async () => {
    await using rig = await Rig.prepare({
      controller: { saveLimiter: new ExponentialLimiter({ baseMs: 3_600_000, maxMs: 3_600_000 }) },
    });
    rig.addClass();
    rig.addClaim();
    const refusal = rig.refuse('create', 'persistentvolumes');
    const leading = lead(rig, new AbortController().signal);
    await rig.until('the volume to be refused', () => refusal.hits > 0);
    takeOver(rig);
    assert.equal(await leading, 'lost');
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.provisioner.deletions, []);
    assert.deepEqual(rig.volumes, []);
  });

  test('starts nothing new', async () => {
    await using rig = await Rig.prepare({ limiter: new ExponentialLimiter({ baseMs: 1, maxMs: 1 }) });
    rig.addClass();
    for (const name of ['a', 'b', 'c']) rig.addClaim(name);
    rig.provisioner.otherwiseProvision = (_options, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    const leading = lead(rig, new AbortController().signal);
    await rig.until('the first call', () => rig.provisioner.provisions.length === 1);
    takeOver(rig);
    assert.equal(await leading, 'lost');
    assert.equal(rig.provisioner.provisions.length, 1);
    assert.deepEqual(rig.api.list(resource.volumes), []);
  });
});
