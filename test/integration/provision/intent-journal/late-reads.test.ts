/** A read of a shard comes back when the shard is known already. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import type { FaultAction } from '../../../../sandbox/api/faults.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { keysOf, leaseResource, never, open, recordOf, Rig, uidOf } from './rig.ts';

/** A record that fills most of a shard. */
const large = (n: number) => recordOf(n, { plan: { padding: randomBytes(90_000).toString('hex') } });

const slowMs = 1000;

/** The slow read of a shard was answered. */
async function slowRead(rig: Rig, name: string): Promise<void> {
  await eventually(() => {
    const reads = rig.server.requestLog.entries({ verb: 'get' });
    assert.ok(reads.some(({ path, durationMs }) => path.endsWith(`/${name}`) && durationMs >= slowMs - 1));
  });
}

test('the records of a shard whose read is slow are taken over and closed, though the read of another one has failed', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  const claims = [1, 2, 3, 4];
  for (const n of claims) await first.journal.put(large(n), never);
  await first.stop();
  const used = rig.shards.filter((shard) => keysOf(shard).some((key) => rig.stored.includes(key)));
  const [failing, slow] = used.map(({ metadata }) => metadata.name).filter((name) => name !== 'lock-journal-0');
  assert.equal(used.length, claims.length);
  const match = { userAgent: 'second', verb: 'get', resource: 'leases' };
  const failure = rig.fault({ match: { ...match, name: failing! }, action: { type: 'status', code: 503 }, times: 1 });
  const delay = rig.fault({ match: { ...match, name: slow! }, action: { type: 'delay', ms: slowMs }, times: 1 });

  const second = await rig.open({ writer: 'second' });
  assert.deepEqual([failure.hits, delay.hits], [1, 1]);
  await slowRead(rig, slow!);
  await second.journal.flush(never);
  assert.deepEqual(rig.stored, claims.map(uidOf));
  const signal = AbortSignal.timeout(20_000);
  for (const n of claims) assert.equal(await second.journal.put(recordOf(n), signal), 'durable');
  for (const n of claims) await second.journal.removeNow(uidOf(n), signal);
  assert.deepEqual(rig.stored, []);
  assert.deepEqual(
    second.heard.toSorted(),
    claims.map((n) => `own claim-${n}`),
  );
});

test('a shard that is read for the first time while the first record is written to it keeps that record', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const first = await rig.open({ exclusive: false, writer: 'first' });
  const second = await rig.open({ exclusive: false, writer: 'second', clock });
  for (const n of [1, 2]) await first.journal.put(large(n), never);
  const match = { userAgent: 'second', verb: 'get', resource: 'leases', name: 'lock-journal-1' };
  const delay = rig.fault({ match, action: { type: 'delay', ms: slowMs }, times: 1 });
  await clock.until(() => delay.hits === 1);
  let how: string | undefined;
  void second.journal.put(recordOf(3), never).then((protection) => (how = protection));
  await clock.until(() => how !== undefined);
  assert.equal(how, 'durable');
  await slowRead(rig, 'lock-journal-1');
  await second.journal.flush(never);
  assert.deepEqual(rig.stored, [1, 2, 3].map(uidOf));
  await second.journal.removeNow(uidOf(3), AbortSignal.timeout(10_000));
  assert.deepEqual(rig.stored, [1, 2].map(uidOf));
});

test('what a slow read shows of a former leader does not fence the process that has written the shard since', async () => {
  await using rig = await Rig.start();
  const first = await rig.open({ writer: 'first' });
  for (const n of [1, 2, 3]) await first.journal.put(large(n), never);
  await first.stop();
  const shards = [1, 2].map((n) => structuredClone(rig.shard(n)!));
  for (const { metadata } of shards) rig.api.delete(leaseResource, { namespace: 'ns', name: metadata.name });
  const match = { userAgent: 'second', resource: 'leases' };
  const delay = rig.fault({
    match: { ...match, verb: 'update', name: 'lock-journal-0' },
    action: { type: 'delay', ms: 200 },
    times: 1,
  });
  const read = (name: string, action: FaultAction) =>
    rig.fault({ match: { ...match, verb: 'get', name }, action, times: 1, after: 1 });
  const failure = read('lock-journal-1', { type: 'status', code: 503 });
  const slow = read('lock-journal-2', { type: 'throttleBytes', bytesPerSecond: 100_000 });

  const second = rig.process({ writer: 'second' });
  const opened = open(second);
  await eventually(() => assert.equal(delay.hits, 1));
  for (const { metadata } of shards) {
    const { name, annotations = {} } = metadata;
    rig.api.create(leaseResource, { metadata: { namespace: 'ns', name, annotations } });
  }
  await opened;
  assert.deepEqual([failure.hits, slow.hits], [1, 1]);
  await slowRead(rig, 'lock-journal-2');
  assert.equal(await second.journal.put(recordOf(9), never), 'durable');
  assert.ok(!second.heard.includes('fenced'), second.heard.join(', '));
});
