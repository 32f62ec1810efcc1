import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FaultAction } from '../../../../sandbox/api/faults.ts';
import { KubeClient } from '../../../../src/kube/client/kube-client.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, open, prefix, recordOf, Rig, uidOf } from './rig.ts';

const headerKey = `${prefix}shard`;

const refusals: Record<string, FaultAction> = {
  'a missing permission': {
    type: 'status',
    code: 403,
    reason: 'Forbidden',
    message: 'leases.coordination.k8s.io is forbidden: User "x" cannot create resource "leases"',
  },
  'a quota': {
    type: 'status',
    code: 403,
    reason: 'Forbidden',
    message: 'leases.coordination.k8s.io "lock-journal-0" is forbidden: exceeded quota: q',
  },
  'a webhook': {
    type: 'status',
    code: 400,
    reason: 'BadRequest',
    message: 'admission webhook "w" denied the request',
  },
  validation: { type: 'status', code: 422, reason: 'Invalid', message: 'Lease is invalid' },
  'a size limit': { type: 'status', code: 413, reason: 'RequestEntityTooLarge', message: 'too large' },
};

test('a journal that cannot be read at the start is waited for, with a line every half minute', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const outage = rig.fault({ match: { verb: 'get', resource: 'leases' }, action: { type: 'status', code: 503 } });
  const process = rig.process({ clock });
  let isOpen = false;
  void open(process).then(() => (isOpen = true));
  const lines = (): number => process.log.filter(({ message }) => message.includes('could not be read')).length;
  await clock.until(() => lines() === 2, { withinMs: 120_000 });
  assert.equal(isOpen, false);
  outage.remove();
  await clock.until(() => isOpen);
});

for (const verb of ['create', 'update', 'get']) {
  for (const [what, action] of Object.entries(refusals)) {
    test(`records are unprotected while ${what} refuses to ${verb}, and written once that is mended`, async () => {
      await using rig = await Rig.start();
      const clock = new ManualClock();
      const refusal = rig.fault({ match: { verb, resource: 'leases' }, action });
      const process = rig.process({ clock });
      const { journal, log } = process;
      let isOpen = false;
      void open(process).then(() => (isOpen = true));
      await clock.until(() => isOpen, { withinMs: 20_000 });
      assert.equal(await journal.put(recordOf(1), never), 'unprotected');
      assert.equal(await journal.put(recordOf(2), never), 'unprotected');
      journal.remove(uidOf(2));
      await clock.advance(200_000);
      const errors = log.filter(({ level }) => level === 'error');
      assert.equal(errors.length, 1, JSON.stringify(log));
      assert.match(errors[0]?.message ?? '', /cannot be written/);
      const { addRule } = errors[0]?.fields as { addRule?: string };
      if (what === 'a missing permission') {
        assert.match(addRule ?? '', /resources: \["leases"\]\n {2}verbs: \["get", "create", "update"\]/);
      } else assert.equal(addRule, undefined);
      assert.deepEqual(process.protected, [false]);
      refusal.remove();
      await clock.until(() => process.protected.length > 1, { withinMs: 80_000 });
      assert.deepEqual(process.protected, [false, true]);
      await journal.flush(never);
      assert.deepEqual(rig.stored, [uidOf(1)]);
      assert.equal(await journal.put(recordOf(3), never), 'durable');
      assert.equal(log.filter(({ level }) => level === 'info').length, 1);
    });
  }
}

/** What a promise resolves with, while the clock goes on for at most 10 s. */
async function inTime<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settle = (): void => {
    isSettled = true;
  };
  promise.then(settle, settle);
  await clock.until(() => isSettled, { withinMs: 10_000 });
  return await promise;
}

test('records that wait when a permission is withdrawn go on unprotected, and the journal recovers', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const process = await rig.open({ clock });
  await process.journal.put(recordOf(1), never);
  const refusal = rig.fault({ match: { verb: 'update' }, action: refusals['a missing permission']! });
  assert.equal(await inTime(clock, process.journal.put(recordOf(2), never)), 'unprotected');
  await process.journal.removeNow(uidOf(1), never);
  refusal.remove();
  await clock.until(() => process.protected.at(-1) === true, { withinMs: 80_000 });
  assert.deepEqual(rig.stored, [uidOf(2)]);
});

test('a header that is edited to that of another format leaves records unprotected until it is corrected, which is logged once', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const process = await rig.open({ clock });
  await process.journal.put(recordOf(1), never);
  const header = rig.shard()?.metadata.annotations?.[headerKey];
  rig.annotate(0, { [headerKey]: '{"format":99,"uid":"u"}' });
  assert.equal(await process.journal.put(recordOf(2), never), 'unprotected');
  await clock.advance(200_000);
  assert.deepEqual(process.protected, [true, false]);
  const errors = process.log.filter(({ level }) => level === 'error');
  assert.equal(errors.length, 1, JSON.stringify(process.log));
  assert.match(errors[0]?.message ?? '', /cannot be written/);
  const { err } = errors[0]?.fields as { err?: Error };
  assert.match(String(err), /lock-journal-0 is in format 99, which this version does not read/);
  rig.annotate(0, { [headerKey]: header });
  await clock.until(() => process.protected.length > 2, { withinMs: 80_000 });
  await process.journal.flush(never);
  assert.deepEqual(rig.stored, [1, 2].map(uidOf));
});

/** Fails in the program itself, as a mistake would, before anything is sent. */
class BrokenClient extends KubeClient {
  isBroken = false;

  override update<T extends KubeObject>(...[resource, object, options]: Parameters<KubeClient['update']>): Promise<T> {
    if (this.isBroken) return Promise.reject(new TypeError('undefined is not a function'));
    return super.update(resource, object, options) as Promise<T>;
  }
}

test('an error that no request should throw has records wait for 3 s, then go on unprotected, and the journal recovers', async () => {
  await using rig = await Rig.start();
  const { transport } = rig.process();
  const client = new BrokenClient({ transport, fieldManager: 'test' });
  const clock = new ManualClock();
  const process = await rig.open({ clock, client });
  client.isBroken = true;
  const brief = process.journal.put(recordOf(1), never);
  await clock.advance(2000);
  client.isBroken = false;
  assert.equal(await inTime(clock, brief), 'durable');

  client.isBroken = true;
  assert.equal(await inTime(clock, process.journal.put(recordOf(2), never)), 'unprotected');
  const errors = process.log.filter(({ level }) => level === 'error');
  assert.deepEqual(
    errors.map(({ message, fields }) => [
      message.includes('cannot be written'),
      String((fields as { err?: Error }).err),
    ]),
    [[true, 'TypeError: undefined is not a function']],
  );
  client.isBroken = false;
  await clock.until(() => process.protected.at(-1) === true, { withinMs: 80_000 });
  await process.journal.flush(never);
  assert.deepEqual(rig.stored, [1, 2].map(uidOf));
});

test('a namespace that does not exist makes records unprotected until it is there', async () => {
  await using rig = await Rig.start();
  const clock = new ManualClock();
  const process = await rig.open({ clock, namespace: 'later' });
  assert.equal(await process.journal.put(recordOf(1), never), 'unprotected');
  rig.api.create({ group: '', version: 'v1', plural: 'namespaces' }, { metadata: { name: 'later' } });
  await clock.until(() => process.protected.at(-1) === true, { withinMs: 80_000 });
});

test('a server that forbids everything for its first seconds is waited for', async () => {
  await using rig = await Rig.start();
  rig.fault({ action: refusals['a missing permission']!, times: 4 });
  const process = await rig.open();
  assert.equal(await process.journal.put(recordOf(1), never), 'durable');
  assert.deepEqual(
    process.log.filter(({ level }) => level === 'error'),
    [],
  );
});

const outages: Record<string, FaultAction> = {
  'too many requests': { type: 'status', code: 429, reason: 'TooManyRequests', message: 'too many' },
  'an internal error': { type: 'status', code: 500, reason: 'InternalError', message: 'etcd' },
  'a gateway error': { type: 'htmlBody', code: 502 },
  'a connection that breaks before': { type: 'dropBefore' },
  'a connection that breaks after': { type: 'dropAfter' },
};

for (const [what, action] of Object.entries(outages)) {
  test(`a record waits through ${what}`, async () => {
    await using rig = await Rig.start();
    const clock = new ManualClock();
    const process = await rig.open({ clock });
    const outage = rig.fault({ match: { verb: 'update' }, action });
    let how: string | undefined;
    void process.journal.put(recordOf(1), never).then((answer) => (how = answer));
    if (what !== 'a connection that breaks after') {
      await clock.advance(55_000);
      assert.equal(how, undefined);
      outage.remove();
    }
    await clock.until(() => how !== undefined, { withinMs: 10_000 });
    assert.equal(how, 'durable');
    assert.deepEqual(rig.stored, [uidOf(1)]);
  });
}

test('a put ends with the reason of its signal, and with the reason of a lost lease', async () => {
  await using rig = await Rig.start();
  const { journal, transport } = await rig.open();
  rig.fault({ match: { verb: 'update' }, action: { type: 'status', code: 500 } });
  const aborter = new AbortController();
  const aborted = journal.put(recordOf(1), aborter.signal);
  aborter.abort(new Error('the sync is over'));
  await assert.rejects(aborted, /the sync is over/);
  const fenced = journal.put(recordOf(2), never);
  transport.fence(new Error('the lease is lost'));
  await assert.rejects(fenced, /the lease is lost/);
  await assert.rejects(journal.put(recordOf(3), never), /the lease is lost/);
  await journal.flush(never);
});
