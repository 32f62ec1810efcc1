/** A process that may not use the Leases of its journal, on an API server with RBAC. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Grant } from '../../../../sandbox/api/authorization.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { never, open, type Process, recordOf, Rig, uidOf } from './rig.ts';

const subjects = ['system:anonymous'];
const mayAsk: Grant = {
  subjects,
  rules: [{ apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectaccessreviews'], verbs: ['create'] }],
};
const mayUseLeases = (verbs: readonly string[]): Grant => ({
  subjects,
  namespace: 'ns',
  rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs }],
});
const all = mayUseLeases(['get', 'create', 'update']);

async function startRig(...grants: Grant[]): Promise<Rig> {
  return await Rig.start({ auth: { tokens: {}, anonymous: true, authorization: { mode: 'rbac', grants } } });
}

function reviews(rig: Rig): number {
  return rig.server.requestLog.entries({ resource: 'selfsubjectaccessreviews' }).length;
}

/** Opens the journal. @returns how long that takes, in milliseconds. */
async function opened(process: Process, clock: ManualClock): Promise<number> {
  let isOpen = false;
  void open(process).then(() => (isOpen = true));
  return await clock.until(() => isOpen, { withinMs: 20_000 });
}

for (const verbs of [[], ['get'], ['get', 'create'], ['get', 'update']]) {
  const what = verbs.length === 0 ? 'any right' : `more than the right to ${verbs.join(' and ')}`;
  test(`without ${what} no claim is held, and the rule is logged once`, async () => {
    await using rig = await startRig(mayAsk, mayUseLeases(verbs));
    const clock = new ManualClock({ turns: 60 });
    const process = rig.process({ clock });
    assert.equal(await opened(process, clock), 0, 'no time passes');
    assert.equal(await process.journal.put(recordOf(1), never), 'unprotected');
    assert.equal(clock.monotonicMs(), 0);
    await clock.advance(300_000);
    const errors = process.log.filter(({ level }) => level !== 'debug');
    assert.equal(errors.length, 1, JSON.stringify(errors));
    const { addRule } = errors[0]?.fields as { addRule?: string };
    assert.match(addRule ?? '', /resources: \["leases"\]\n {2}verbs: \["get", "create", "update"\]/);
    assert.deepEqual(process.protected, [false]);
    assert.equal(clock.monotonicMs(), 300_000);

    rig.server.authorization.setGrants([mayAsk, all]);
    await clock.until(() => process.protected.length > 1, { withinMs: 80_000 });
    assert.deepEqual(rig.stored, [uidOf(1)], 'a right that is granted later is used');
    assert.equal(await process.journal.put(recordOf(2), never), 'durable');
  });
}

test('a right that is taken away holds no claim either', async () => {
  await using rig = await startRig(mayAsk, all);
  const clock = new ManualClock({ turns: 60 });
  const process = rig.process({ clock });
  await opened(process, clock);
  assert.equal(await process.journal.put(recordOf(1), never), 'durable');
  rig.server.authorization.setGrants([mayAsk, mayUseLeases(['get', 'create'])]);
  assert.equal(await process.journal.put(recordOf(2), never), 'unprotected');
  assert.equal(clock.monotonicMs(), 0);
});

test('a process with the rights asks for none', async () => {
  await using rig = await startRig(mayAsk, all);
  const { journal } = await rig.open();
  assert.equal(await journal.put(recordOf(1), never), 'durable');
  assert.equal(reviews(rig), 0);
});

for (const [what, action] of Object.entries({
  forbidden: { type: 'status', code: 403, reason: 'Forbidden', message: 'forbidden: User "x" cannot create reviews' },
  'not served': { type: 'status', code: 404, reason: 'NotFound' },
} as const)) {
  test(`a question that is ${what} leaves open whether the right is missing: it is waited for`, async () => {
    await using rig = await startRig(mayAsk);
    const asked = rig.fault({ match: { resource: 'selfsubjectaccessreviews' }, action });
    const clock = new ManualClock({ turns: 60 });
    const process = rig.process({ clock });
    const heldMs = await opened(process, clock);
    assert.ok(heldMs >= 3000, `held for ${heldMs} ms`);
    assert.ok(asked.hits > 0);
    assert.equal(await process.journal.put(recordOf(1), never), 'unprotected');
    const messages = process.log.filter(({ level }) => level !== 'debug').map(({ message }) => message);
    assert.equal(messages.length, 1, 'the question itself is not reported');
  });
}

test('a server that knew only some of its roles when it was asked is asked again soon', async () => {
  await using rig = await startRig(mayAsk);
  const clock = new ManualClock({ turns: 60 });
  const process = rig.process({ clock });
  await opened(process, clock);
  rig.server.authorization.setGrants([mayAsk, all]);
  await clock.until(() => process.protected.at(-1) === true, { withinMs: 10_000 });
});
