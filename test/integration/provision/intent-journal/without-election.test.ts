import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../../../src/base/logger.ts';
import { TransportError } from '../../../../src/kube/client/api-error.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { clusterJournal } from '../../../../src/provision/intent-journal/cluster-journal.ts';
import { ForeignIntentError } from '../../../../src/provision/intent-journal/intent-journal.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, recordOf, Rig, silentListener, uidOf } from './rig.ts';

const shared = { exclusive: false };

test('two writers of one shard both get their records stored', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  const b = await rig.open({ ...shared, writer: 'b' });
  await Promise.all([1, 3, 5].map((n) => a.journal.put(recordOf(n), never)));
  await Promise.all([2, 4, 6].map((n) => b.journal.put(recordOf(n), never)));
  a.journal.remove(uidOf(1));
  await a.journal.flush(never);
  assert.deepEqual(rig.stored, [2, 3, 4, 5, 6].map(uidOf));
  assert.equal(rig.entry(3)?.writer, 'a');
  assert.equal(rig.entry(4)?.writer, 'b');
});

test('the records of a living writer stay its own, those of a silent one are taken over after 30 seconds', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ ...shared, writer: 'b', clock });
  assert.deepEqual(b.heard, ['foreign claim-1']);
  await clock.advance(120_000);
  assert.deepEqual(b.heard, ['foreign claim-1']);
  await a.stop();
  const passedMs = await clock.until(() => b.heard.length > 1);
  assert.deepEqual(b.heard, ['foreign claim-1', 'own claim-1']);
  assert.ok(passedMs >= 20_000 && passedMs <= 50_000, `taken over after ${passedMs} ms`);
  assert.equal(rig.entry(1)?.writer, 'b');
});

test('the records of an earlier process that cannot run beside this one are taken over at once', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'disk-1_a', clock });
  await a.journal.put(recordOf(1), never);
  const other = await rig.open({ ...shared, writer: 'disk-2_a', clock });
  await other.journal.put(recordOf(2), never);
  await a.stop();
  const isFormer = (writer: string): boolean => writer.startsWith('disk-1_');
  const b = await rig.open({ ...shared, writer: 'disk-1_b', isFormer, clock });
  const passedMs = await clock.until(() => b.heard.includes('own claim-1'));
  assert.ok(passedMs < 10_000, `taken over after ${passedMs} ms`);
  assert.deepEqual(b.heard.toSorted(), ['foreign claim-2', 'own claim-1']);
});

/** Fails in the program itself, as a mistake would, when it reads. */
class BrokenClient extends KubeClient {
  error: Error | undefined;

  override get<T extends KubeObject>(...args: Parameters<KubeClient['get']>): Promise<T> {
    return this.error === undefined ? super.get(...args) : Promise.reject(this.error);
  }
}

test('an error that no request should throw is logged once while others are followed, and nobody counts as silent', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  const client = new BrokenClient({ transport: rig.process().transport, fieldManager: 'test' });
  const b = await rig.open({ ...shared, writer: 'b', clock, client });
  await a.stop();
  const errors = (): string[] =>
    b.log
      .filter(({ level }) => level === 'error')
      .map(({ message, fields }) => `${message}: ${(fields as { err?: Error }).err?.message}`);
  const unread = 'The intent journal could not be read again, retrying: this is probably a bug in this program';
  client.error = new TypeError('a mistake');
  await clock.until(() => errors().length > 0);
  await clock.advance(60_000);
  client.error = new RangeError('another mistake');
  await clock.until(() => errors().length > 1);
  assert.deepEqual(errors(), [`${unread}: a mistake`, `${unread}: another mistake`]);
  assert.deepEqual(b.heard, ['foreign claim-1']);
  client.error = new TransportError('no route', { code: 'EHOSTUNREACH' });
  await clock.advance(60_000);
  assert.equal(errors().length, 2);
  client.error = undefined;
  await clock.until(() => b.heard.includes('own claim-1'));
});

test('an error of those who are told of the records of others ends the run', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  const { transport } = rig.process();
  const b = clusterJournal({
    ...shared,
    writer: 'b',
    client: new KubeClient({ transport, fieldManager: 'test' }),
    namespace: 'ns',
    lockName: 'lock',
    isKnownProvisioner: () => true,
    clock,
    logger: silentLogger,
  });
  const mistake = new TypeError('a mistake');
  let endedBy: unknown;
  b.run(never).catch((error: unknown) => (endedBy = error));
  const onFound = (): void => {
    throw mistake;
  };
  await b.open({ ...silentListener, onFound }, never);
  await a.journal.put(recordOf(1), never);
  await clock.until(() => endedBy !== undefined);
  assert.equal(endedBy, mistake);
});

test('a record that its owner closes is reported as gone', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ ...shared, writer: 'b', clock });
  await a.journal.removeNow(uidOf(1), never);
  await clock.until(() => b.heard.length > 1);
  assert.deepEqual(b.heard, ['foreign claim-1', 'gone 01']);
});

test('a put takes over the record of another process, which is gone for that one', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ ...shared, writer: 'b' });
  assert.equal(await b.journal.put(recordOf(1, { phase: 'unclear' }), never), 'durable');
  assert.equal(rig.entry(1)?.writer, 'b');
  await assert.rejects(a.journal.put(recordOf(1), never), ForeignIntentError);
  assert.deepEqual(a.heard, ['gone 01', 'foreign claim-1']);
  a.journal.remove(uidOf(1));
  await a.journal.flush(never);
  assert.deepEqual(rig.stored, [uidOf(1)]);
});

test('a record that another process took over is not replaced by one with a new plan, though its request was never sent', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  await a.journal.put(recordOf(1, { plan: { node: 'n1' } }), never);
  const b = await rig.open({ ...shared, writer: 'b' });
  await b.journal.put(recordOf(1, { phase: 'unclear', plan: { node: 'n1' } }), never);
  a.journal.remove(uidOf(1)); // not knowing of b
  await assert.rejects(a.journal.put(recordOf(1, { plan: { node: 'n2' } }), never), ForeignIntentError);
  assert.deepEqual(a.heard, ['gone 01', 'foreign claim-1']);
  assert.equal(rig.entry(1)?.record.plan['node'], 'n1');
  assert.equal(rig.entry(1)?.writer, 'b');
});

test('of two processes that begin a record of one claim the first has it, and the other one finds it', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  const b = await rig.open({ ...shared, writer: 'b' });
  await a.journal.put(recordOf(1, { plan: { from: 'a' } }), never);
  await assert.rejects(b.journal.put(recordOf(1, { plan: { from: 'b' } }), never), ForeignIntentError);
  assert.deepEqual(b.heard, ['foreign claim-1']);
  b.journal.remove(uidOf(1));
  await b.journal.flush(never);
  assert.equal(rig.entry(1)?.record.plan['from'], 'a');
  assert.equal(rig.entry(1)?.writer, 'a');
});

test('a record that waits for its shard is dropped when another process turns out to have one of the claim', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  const b = await rig.open({ ...shared, writer: 'b' });
  await a.journal.put(recordOf(2, { plan: { from: 'a' } }), never);
  const slow = rig.fault({ match: { userAgent: 'b', verb: 'update' }, action: { type: 'delay', ms: 200 } });
  const first = b.journal.put(recordOf(1), never);
  await eventually(() => assert.equal(slow.hits, 1));
  await assert.rejects(b.journal.put(recordOf(2, { plan: { from: 'b' } }), never), ForeignIntentError);
  assert.equal(await first, 'durable');
  assert.deepEqual(b.heard, ['foreign claim-2']);
  assert.equal(rig.entry(2)?.record.plan['from'], 'a');
});

test('a record that another process deletes by cannot be taken over by a put', async () => {
  await using rig = await Rig.start();
  const a = await rig.open({ ...shared, writer: 'a' });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ ...shared, writer: 'b' });
  await a.journal.put(recordOf(1, { phase: 'delete', handle: 'h' }), never); // b does not know yet
  await assert.rejects(b.journal.put(recordOf(1), never), ForeignIntentError);
  await assert.rejects(b.journal.put(recordOf(1), never), ForeignIntentError);
  assert.equal(rig.entry(1)?.writer, 'a');
  assert.equal(rig.entry(1)?.record.phase, 'delete');
});

test('nothing is taken over while the API server could not be read', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  const b = await rig.open({ ...shared, writer: 'b', clock });
  await a.stop();
  const outage = rig.fault({ match: { userAgent: 'b' }, action: { type: 'status', code: 503 } });
  await clock.advance(60_000);
  outage.remove();
  await clock.advance(19_000);
  assert.deepEqual(b.heard, ['foreign claim-1']);
  await clock.until(() => b.heard.length > 1);
});

test('of two that take over the same record only one gets it', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  await a.journal.put(recordOf(1), never);
  await a.stop();
  const others = [await rig.open({ ...shared, writer: 'b', clock }), await rig.open({ ...shared, writer: 'c', clock })];
  await clock.advance(70_000);
  const owners = others.filter(({ heard }) => heard.includes('own claim-1'));
  assert.equal(owners.length, 1);
});

test('a record that a process left before it died is found by one that did not know of it', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const a = await rig.open({ ...shared, writer: 'a', clock });
  const b = await rig.open({ ...shared, writer: 'b', clock });
  await a.journal.put(recordOf(1), never);
  await a.stop();
  await clock.until(() => b.heard.includes('own claim-1'));
});
