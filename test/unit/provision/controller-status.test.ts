import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Lister } from '../../../src/kube/cache/store.ts';
import type { KubeObject } from '../../../src/kube/kube-object.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import { WorkQueue } from '../../../src/kube/queue/work-queue.ts';
import { ControllerStatus, type ControllerStatusParts } from '../../../src/provision/controller-status.ts';
import type { IntentRecord } from '../../../src/provision/intent-journal/intent-journal.ts';
import { type Calls, noCalls, noSaves } from '../../../src/provision/intents/earlier-requests.ts';
import { type Intent, newIntent } from '../../../src/provision/intents/intent.ts';
import {
  anythingSent,
  deleting,
  type IntentState,
  maxProofMs,
  revoking,
} from '../../../src/provision/intents/intent-state.ts';
import type { StorageClass } from '../../../src/provision/objects.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { makeClaim, makeVolume } from './claims-and-volumes.ts';

function lister<T extends KubeObject>(...objects: T[]): Lister<T> {
  const found = (key: string): T[] => objects.filter(({ metadata: { name, uid } }) => key === name || key === uid);
  return { list: () => objects, get: (name) => found(name)[0], byIndex: (_index, uid) => found(String(uid)) };
}

function setUp(parts: Partial<ControllerStatusParts> = {}) {
  const clock = new ManualClock();
  const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 60_000 });
  const [claimQueue, volumeQueue, unsavedQueue] = [1, 2, 3].map(() => new WorkQueue({ limiter, clock }));
  assert.ok(claimQueue && volumeQueue && unsavedQueue);
  const status = new ControllerStatus({
    isKnownProvisioner: (name) => name === 'drv',
    ownsSource: undefined,
    addFinalizer: true,
    volumeName: ({ metadata: { uid } }) => `pvc-${uid ?? ''}`,
    claims: lister(),
    volumes: lister(),
    classes: { get: (name) => ({ metadata: { name }, provisioner: 'drv' }) },
    intents: intentsWith(),
    store: { isUnsaved: () => false },
    recentlySaved: { has: () => false },
    sharedStorage: undefined,
    lastErrors: undefined,
    volumeErrors: undefined,
    claimQueue,
    volumeQueue,
    unsavedQueue,
    clock,
    ...parts,
  });
  return { clock, claimQueue, volumeQueue, status };
}

function intentsWith(intent?: Intent): ControllerStatusParts['intents'] {
  return { list: () => [intent].filter((each) => each !== undefined).values(), get: () => intent, heldInMs: () => 0 };
}

const claims = (count: number) =>
  Array.from({ length: count }, (_, number) => makeClaim({ name: `c${number}`, uid: `u${number}` }));

describe('ControllerStatus', () => {
  const steps = (status: ControllerStatus): (string | undefined)[] =>
    [...status.waitingClaims()].map((claim) => claim?.step);

  test('counts claims that were not handed over, if their class is of this provisioner', () => {
    const classes = new Map<string, StorageClass>([
      ['now', { metadata: { name: 'now' }, provisioner: 'drv' }],
      ['late', { metadata: { name: 'late' }, provisioner: 'drv', volumeBindingMode: 'WaitForFirstConsumer' }],
      ['other', { metadata: { name: 'other' }, provisioner: 'else', volumeBindingMode: 'WaitForFirstConsumer' }],
    ]);
    const scheduled = { 'volume.kubernetes.io/selected-node': 'n1' };
    const { status } = setUp({
      classes,
      claims: lister(
        makeClaim({ annotations: {} }, { storageClassName: 'late' }),
        makeClaim({ annotations: scheduled }, { storageClassName: 'late' }),
        makeClaim({ annotations: {} }, { storageClassName: 'now' }),
        makeClaim({ annotations: {} }, { storageClassName: 'late', volumeName: 'v' }),
        makeClaim({ annotations: {} }, { storageClassName: 'other' }),
        makeClaim({ annotations: {} }, { storageClassName: 'absent' }),
      ),
    });
    const [none, handedOver] = [undefined, 'not-handed-over'];
    assert.deepEqual(steps(status), ['waiting-for-consumer', handedOver, handedOver, none, none, none]);
  });

  test('says that a claim waits, not that it failed, where the last attempt found that it has to', () => {
    const { claimQueue, status } = setUp({
      claims: lister(...claims(2)),
      lastErrors: {
        get: (uid) => ({ message: '', kind: uid === 'u0' ? 'waiting' : 'failed', atMs: 2, sinceMs: 1 }),
      },
    });
    for (const uid of ['u0', 'u1']) claimQueue.addRateLimited(uid);
    assert.deepEqual(steps(status), ['waiting', 'retrying']);
  });

  test('says of no more claims than there are workers that they are in progress, however long the list takes', async () => {
    const { claimQueue, status } = setUp({ claims: lister(...claims(6)) });
    for (const uid of ['u0', 'u1', 'u2', 'u3', 'u4', 'u5']) claimQueue.add(uid);
    const steps: (string | undefined)[] = [];
    let inWork = await claimQueue.get(); // one worker
    for (const claim of status.waitingClaims()) {
      steps.push(claim?.step);
      claimQueue.done(inWork ?? '');
      inWork = steps.length < 6 ? await claimQueue.get() : undefined;
    }
    assert.deepEqual(steps, ['syncing', 'queued', 'queued', 'queued', 'queued', 'queued']);
  });

  test('claims and volumes that are gone do not count as delayed, though their keys still have their time', () => {
    const { claimQueue, volumeQueue, status } = setUp({
      claims: lister(makeClaim({ uid: 'there' }), makeClaim({ uid: 'bound' }, { volumeName: 'v' })),
      volumes: lister(makeVolume({ name: 'pv-there' })),
    });
    for (const uid of ['there', 'bound', 'gone']) claimQueue.addRateLimited(uid);
    for (const name of ['pv-there', 'pv-gone', 'pv-gone-2']) volumeQueue.addRateLimited(name);
    assert.deepEqual(
      status.queues().map(({ name, delayed }) => [name, delayed]),
      [
        ['claims', 1],
        ['volumes', 1],
        ['unsavedpvs', 0],
      ],
    );
  });

  test('lists the released volumes of this provisioner whose storage is to be deleted, each with its step', async () => {
    const released = (name: string, rest: object = {}) => makeVolume({ name }, { phase: 'Released', ...rest });
    const { volumeQueue, status } = setUp({
      volumes: lister(
        makeVolume({ name: 'bound' }),
        released('kept', { persistentVolumeReclaimPolicy: 'Retain' }),
        makeVolume(
          { name: 'foreign', annotations: {} },
          { phase: 'Released', csi: { driver: 'x', volumeHandle: 'h' } },
        ),
        released('syncing', { claimRef: { namespace: 'ns', name: 'a', uid: 'u1' } }),
        released('queued'),
        released('retrying'),
        released('quiet'),
        released('shared'),
        released('attached'),
        released('moved', { csi: { driver: 'x', volumeHandle: 'h' } }),
      ),
      ownsSource: ({ spec }) => spec.csi?.driver === 'drv',
      intents: { ...intentsWith(), heldInMs: (name) => (name === 'quiet' ? 5000 : 0) },
      sharedStorage: {
        waitText: (name) => (name === 'shared' ? 'has the same storage as persistentvolume b' : undefined),
      },
      volumeErrors: {
        get: (name) => (name === 'retrying' ? { message: 'in use', kind: 'failed', atMs: 2, sinceMs: 1 } : undefined),
      },
    });
    volumeQueue.add('syncing');
    assert.equal(await volumeQueue.get(), 'syncing');
    volumeQueue.add('queued');
    volumeQueue.addRateLimited('retrying');
    const found = [...status.releasedVolumes()].filter((volume) => volume !== undefined);
    assert.deepEqual(
      found.map(({ name, step, nextTryInMs }) => [name, step, nextTryInMs]),
      [
        ['syncing', 'syncing', undefined],
        ['queued', 'queued', undefined],
        ['retrying', 'retrying', 1000],
        ['quiet', 'earlier-call', 5000],
        ['shared', 'shared-storage', undefined],
        ['attached', 'idle', undefined],
        ['moved', 'other-source', undefined],
      ],
    );
    assert.equal(found[0]?.claim, 'ns/a');
    assert.deepEqual([found[2]?.failures, found[2]?.lastError?.message], [1, 'in use']);
    assert.equal(found[4]?.waitText, 'has the same storage as persistentvolume b');
    const wrong = 'its annotation pv.kubernetes.io/provisioned-by names drv, but its storage is of CSI driver x';
    assert.equal(found[6]?.waitText, wrong);
  });

  const record = (phase: IntentRecord['phase']): IntentRecord => ({
    claim: { namespace: 'ns', name: 'a', uid: 'u1' },
    volume: { name: 'pvc-u1', className: 'c1', provisioner: 'drv', defaults: {}, claimRef: {} },
    plan: {},
    phase,
    createdAt: '2026-11-20T09:00:00Z',
  });
  const callsUntil = (endMs: number): Calls => ({ ...noCalls, sinceMs: 0, endMs });
  const storage = { handle: 'h', isCurrent: true };
  const waits: [string, (nowMs: number) => IntentState, string, number | undefined][] = [
    ['a call that was given up', (now) => revoking(anythingSent(callsUntil(now + 9000))), 'earlier-call', 9000],
    ['a saved volume', (now) => ({ kind: 'saved', calls: callsUntil(now + 7000) }), 'earlier-call', 7000],
    [
      'an unread call of a saved volume',
      (now) => ({ kind: 'saved', calls: { ...noCalls, unread: { firstMs: now, lastMs: now } } }),
      'earlier-call',
      60_000,
    ],
    [
      'an unread call',
      (now) => revoking(anythingSent({ ...noCalls, unread: { firstMs: now, lastMs: now } })),
      'earlier-call',
      undefined,
    ],
    [
      'a deletion of another process',
      (now) => deleting(anythingSent(noCalls), { storage, isLast: true, isSent: true, notBeforeMs: now + 3000 }),
      'earlier-call',
      3000,
    ],
    [
      'a foreign record',
      () => ({ kind: 'foreign', calls: noCalls, isUnclear: false, problem: undefined }),
      'other-process',
      undefined,
    ],
    [
      'a late save',
      (now) => revoking({ ...anythingSent(noCalls), saves: { ...noSaves, endMs: now + 65_000 } }),
      'late-save',
      65_000,
    ],
    ['a proof', (now) => ({ ...revoking(anythingSent(noCalls)), proofSinceMs: now }), 'proof', maxProofMs],
  ];
  for (const [name, stateAt, reason, endsInMs] of waits) {
    test(`${name} that is waited for is said with its end, of the record and of the claim`, () => {
      const intent: Intent = newIntent(record('create'));
      const { clock, status } = setUp({ intents: intentsWith(intent), claims: lister(...claims(1)) });
      intent.state = stateAt(clock.monotonicMs());
      assert.deepEqual([...status.openIntents()][0]?.wait, { reason, endsInMs });
      assert.deepEqual([...status.waitingClaims()][0]?.wait, { reason, endsInMs });
    });
  }

  test('a record that is worked on does not wait', () => {
    const { status } = setUp({ intents: intentsWith(newIntent(record('create'))) });
    assert.equal([...status.openIntents()][0]?.wait, undefined);
  });
});
