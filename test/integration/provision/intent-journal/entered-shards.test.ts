/** Shards that a leader has entered, but whose Leases it has not created yet when another one takes over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InjectedFault } from '../../../../sandbox/api/faults.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, open, type Process, recordOf, Rig, uidOf } from './rig.ts';

/** A record that leaves room for only one more of its size in a shard. */
const large = (n: number) => recordOf(n, { plan: { padding: `${n}-`.repeat(30_000) } });

interface Paused {
  process: Process;
  clock: ManualClock;
  /** Keeps it from creating a Lease. */
  pause: InjectedFault;
  put: Promise<unknown>;
}

/** A leader that has filled the first shard, and is kept from creating the second one, which it has entered. */
async function pausedLeader(rig: Rig): Promise<Paused> {
  const clock = new ManualClock();
  const process = await rig.open({ writer: 'first', clock });
  const pause = rig.fault({ match: { userAgent: 'first', verb: 'create' }, action: { type: 'status', code: 503 } });
  let put: Promise<unknown> = Promise.resolve();
  for (let n = 1; pause.hits === 0; n++) {
    put = process.journal.put(large(n), never);
    put.catch(() => undefined);
    await clock.until(() => pause.hits > 0 || rig.stored.length === n);
  }
  return { process, clock, pause, put };
}

/** The paused leader goes on. @returns what became of its record. */
async function goOn({ clock, pause, put }: Paused): Promise<unknown> {
  pause.remove();
  let outcome: unknown;
  put.then(
    (protection) => (outcome = protection),
    (error: unknown) => (outcome = error),
  );
  await clock.until(() => outcome !== undefined);
  return outcome;
}

test('a former leader that creates a shard which its successor has not seen is fenced', async () => {
  await using rig = await Rig.start();
  const paused = await pausedLeader(rig);
  const second = await rig.open({ writer: 'second' });
  const found = second.heard.length;
  assert.match(String(await goOn(paused)), /written by another process \(second\)/);
  assert.deepEqual(paused.process.heard, ['fenced']);
  assert.equal(rig.stored.length, found, 'no record of it is stored');
  for (let n = 20; n < 24; n++) assert.equal(await second.journal.put(large(n), never), 'durable');
  assert.equal(second.heard.length, found);
  assert.equal((await rig.open()).heard.length, found + 4);
});

test('a former leader that meets the shard of its successor is fenced, and takes nothing from it', async () => {
  await using rig = await Rig.start();
  const paused = await pausedLeader(rig);
  const second = await rig.open({ writer: 'second' });
  for (let n = 20; n < 24; n++) await second.journal.put(large(n), never);
  assert.match(String(await goOn(paused)), /written by another process \(second\)/);
  for (let n = 20; n < 24; n++) assert.equal(rig.entry(n)?.writer, 'second');
  assert.equal(await second.journal.put(large(24), never), 'durable');
  assert.equal(second.heard.includes('fenced'), false);
});

test('the records of a shard that is created while a successor begins are found by that', async () => {
  await using rig = await Rig.start();
  const paused = await pausedLeader(rig);
  const clock = new ManualClock();
  const second = rig.process({ writer: 'second', clock });
  const late = rig.fault({ match: { userAgent: 'second', verb: 'update' }, action: { type: 'status', code: 503 } });
  let isOpen = false;
  void open(second).then(() => (isOpen = true));
  await clock.until(() => late.hits > 0);
  const before = rig.stored.length;
  assert.equal(await goOn(paused), 'durable');
  assert.equal(rig.stored.length, before + 1);
  late.remove();
  await clock.until(() => isOpen);
  assert.deepEqual([...second.found.keys()].sort(), rig.stored);
  const next = paused.process.journal.put(recordOf(90), never);
  assert.match(String(await goOn({ ...paused, put: next })), /written by another process \(second\)/);
});

test('a new Lease says from the beginning whose it is', async () => {
  await using rig = await Rig.start();
  rig.fault({ match: { verb: 'update' }, action: { type: 'status', code: 503 } });
  const clock = new ManualClock();
  const process = rig.process({ writer: 'first', clock });
  void open(process).catch(() => undefined);
  await clock.until(() => rig.shard() !== undefined);
  const header = rig.shard()?.metadata.annotations?.['csi-provisioner.journal/shard'] ?? '{}';
  assert.equal((JSON.parse(header) as { writer: string }).writer, 'first');
});

test('a creation whose answer is lost counts as done', async () => {
  await using rig = await Rig.start();
  rig.fault({ match: { verb: 'create', resource: 'leases' }, action: { type: 'dropAfter' }, times: 1 });
  const { journal, heard } = await rig.open();
  assert.equal(await journal.put(recordOf(1), never), 'durable');
  assert.deepEqual([rig.stored, heard], [[uidOf(1)], []]);
});
