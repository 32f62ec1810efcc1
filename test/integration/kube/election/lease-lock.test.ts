import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import { HolderSocket } from '../../../../src/kube/election/holder-socket.ts';
import { LeaseLock } from '../../../../src/kube/election/lease-lock.ts';
import { type Lease, lockKinds } from '../../../../src/kube/election/lease-record.ts';
import { LeaseServer } from '../lease-server.ts';

/** A lock that holds the Lease. */
async function heldLock(leases: LeaseServer): Promise<LeaseLock> {
  const { clock } = leases;
  const lock = new LeaseLock({
    client: new KubeClient({ transport: leases.transport('a', clock), fieldManager: 'test' }),
    kind: lockKinds.lease,
    namespace: 'ns',
    name: 'lock',
    identity: 'a',
    socket: new HolderSocket({ identity: 'a', place: '' }),
    labels: {},
    leaseDurationMs: 15_000,
    clock,
    logger: silentLogger,
  });
  assert.ok(await lock.tryAcquireOrRenew({ signal: new AbortController().signal }));
  return lock;
}

describe('a lock with several tries under way', () => {
  test('counts from the newest that succeeded, whichever response is read last', async () => {
    await using leases = await LeaseServer.start();
    const { clock } = leases;
    const lock = await heldLock(leases);
    const { signal } = new AbortController();
    await clock.advance(5000);
    let answerFirst = (): void => undefined;
    leases.server.next({ method: 'PUT' }, (reply, { body }) => {
      leases.write(body as Lease);
      const written = leases.lease;
      answerFirst = () => reply.json(200, written);
    });
    const first = lock.tryAcquireOrRenew({ signal, keepOnly: true });
    await clock.advance(2000);
    assert.ok(await lock.tryAcquireOrRenew({ signal, keepOnly: true, newConnection: true }), 'after a conflict');
    assert.equal(lock.renewedAt?.monotonicMs, 7000);
    answerFirst();
    assert.ok(await first);
    assert.deepEqual([lock.renewedAt.monotonicMs, lock.expiresAtMs], [7000, 22_000]);
  });

  test('does not count from when it reads a write of its own whose response was lost', async () => {
    await using leases = await LeaseServer.start();
    const { clock } = leases;
    const lock = await heldLock(leases);
    await clock.advance(5000);
    const { signal } = new AbortController();
    leases.server.next({ method: 'PUT' }, (reply, { body }) => {
      leases.write(body as Lease);
      reply.status(500, 'InternalError');
    });
    leases.server.next({ method: 'GET' }, (reply) => reply.status(500, 'InternalError'));
    assert.equal(await lock.tryAcquireOrRenew({ signal, keepOnly: true }), false);
    await clock.advance(4000);
    assert.ok(leases.lease);
    assert.equal(lock.observe(leases.lease), true);
    assert.equal(lock.isOurs, true);
    assert.equal(lock.expiresAtMs, 15_000);
  });
});
