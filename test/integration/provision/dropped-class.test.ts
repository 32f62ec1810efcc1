/** API servers with and without attributes classes, side by side as during an upgrade. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import type { Recorder } from '../../../src/kube/events/event-recorder.ts';
import { WorkQueue } from '../../../src/kube/queue/work-queue.ts';
import { newIntent } from '../../../src/provision/intents/intent.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../src/provision/objects.ts';
import { ClassDroppedError } from '../../../src/provision/volume/stored-volume.ts';
import { savePersistentVolume } from '../../../src/provision/volume/save-volume.ts';
import { VolumeStore } from '../../../src/provision/volume/volume-store.ts';
import type { Answer } from '../../support/fakes/scripted-server.ts';
import { Rig } from '../kube/rig.ts';

const path = '/api/v1/persistentvolumes';
const made: PersistentVolume = {
  metadata: { name: 'v' },
  spec: {
    claimRef: { namespace: 'ns', name: 'c', uid: 'u' },
    csi: { driver: 'drv', volumeHandle: 'h' },
    volumeAttributesClassName: 'gold',
  },
};
const { volumeAttributesClassName: _class, ...withoutClass } = made.spec;
const dropped: PersistentVolume = { ...made, spec: withoutClass };
const intent = newIntent({
  claim: { namespace: 'ns', name: 'c', uid: 'u' },
  volume: { name: 'v', claimRef: made.spec.claimRef ?? {}, className: 'c', provisioner: 'drv', defaults: {} },
  plan: {},
  phase: 'create',
  createdAt: '2026-01-01T00:00:00Z',
});
const volume =
  (object: PersistentVolume, code = 200): Answer =>
  (reply) =>
    reply.json(code, object);
const listed =
  (object: PersistentVolume): Answer =>
  (reply) =>
    reply.json(200, { kind: 'PersistentVolumeList', metadata: {}, items: [object] });

/** Saves the volume once. @returns whether it counts as saved. */
async function save(rig: Rig): Promise<boolean> {
  const saved: PersistentVolume[] = [];
  const unexpected = (): void => assert.fail('not to be called');
  await savePersistentVolume(
    {
      client: rig.client,
      logger: silentLogger,
      recorder: { event: unexpected },
      volumes: { get: () => undefined },
      recentlySaved: { add: () => undefined },
      saveHooks: {
        findEarlierSave: () => Promise.resolve({ intent, permit: undefined }),
        beginSave: () => ({ permit: undefined, recheck: () => undefined, ended: () => undefined }),
        saved: (it) => saved.push(it),
        taken: unexpected,
        dropped: unexpected,
      },
      isElsewhere: undefined,
      lastErrors: undefined,
      meaningOf: undefined,
    },
    made,
    { signal: new AbortController().signal, onSend: () => undefined, onRejected: () => undefined },
  );
  return saved.length === 1;
}

describe('saving a volume with an attributes class', () => {
  test('counts once the API server has kept the class', async () => {
    await using rig = await Rig.start();
    rig.server.next({ method: 'POST', path }, volume(made, 201));
    assert.ok(await save(rig));
    assert.equal(rig.server.requests.length, 1);
  });

  const exists: Answer = (reply) => reply.status(409, 'AlreadyExists');
  const patch = { method: 'PATCH', path: `${path}/v` };

  test('sets the class that an API server without the feature has dropped, over connections of their own', async () => {
    await using rig = await Rig.start();
    rig.server.next({ method: 'POST', path }, volume(dropped, 201));
    rig.server.next(patch, volume(dropped), volume(made));
    assert.ok(await save(rig));
    const patches = rig.server.matching(patch);
    const body = { spec: { volumeAttributesClassName: made.spec.volumeAttributesClassName } };
    assert.deepEqual(
      patches.map((request) => request.body),
      [body, body],
    );
    assert.deepEqual(
      patches.map(({ headers }) => headers.connection),
      ['close', 'close'],
    );
  });

  test('fails while all servers drop the class, and sets it with a later attempt', async () => {
    await using rig = await Rig.start();
    rig.server.next({ method: 'POST', path }, volume(dropped, 201), exists);
    rig.server.next({ method: 'GET', path }, listed(dropped));
    rig.server.next(patch, volume(dropped), volume(dropped), volume(made));
    await assert.rejects(save(rig), (error) => {
      assert.ok(error instanceof ClassDroppedError);
      assert.match(error.message, /"v" was saved without its volume attributes class "gold"/);
      return true;
    });
    assert.ok(await save(rig));
  });

  test('is recorded on the claim while the class is dropped, until a server keeps it', async () => {
    await using rig = await Rig.start();
    const claim: PersistentVolumeClaim = { metadata: { namespace: 'ns', name: 'c', uid: 'u' }, spec: {} };
    const messages: string[] = [];
    const stop = new AbortController();
    const { client, clock } = rig;
    const recorder: Recorder = { event: (_about, _type, reason, message) => messages.push(`${reason}: ${message}`) };
    const store = new VolumeStore(
      { client, permit: undefined, recorder, meaningOf: undefined, abort: stop.signal, clock, logger: silentLogger },
      {
        queue: new WorkQueue({ clock, limiter: new ExponentialLimiter({ baseMs: 5, maxMs: 1000 }) }),
        claims: { byIndex: () => [claim] },
        volumes: { get: () => undefined },
        recentlySaved: { add: () => undefined },
        saveHooks: undefined,
        isElsewhere: undefined,
        unwanted: undefined,
        lastErrors: undefined,
      },
    );
    rig.server.always({ method: 'POST', path }, exists);
    rig.server.always({ method: 'GET', path }, listed(dropped));
    rig.server.always(patch, (reply) => reply.json(200, messages.length < 3 ? dropped : made));
    const running = store.run(stop.signal);
    await store.save(claim, made);
    await rig.clock.until(() => !store.isUnsaved('v'));
    stop.abort();
    await running;
    const failure =
      'ProvisioningFailed: Error creating provisioned PV object for claim ns/c: PersistentVolume "v" was saved without its ' +
      'volume attributes class "gold": the API server has the feature VolumeAttributesClass switched off. ' +
      'The volume is kept at the storage, saving it is tried again until it succeeds.';
    assert.deepEqual(messages, [failure, failure, failure, 'ProvisioningSucceeded: Successfully provisioned volume v']);
  });

  test('leaves a volume alone that was bound without it', async () => {
    await using rig = await Rig.start();
    rig.server.next({ method: 'POST', path }, exists);
    rig.server.next({ method: 'GET', path }, listed({ ...dropped, status: { phase: 'Bound' } }));
    assert.ok(await save(rig));
    assert.deepEqual(
      rig.server.requests.map(({ method }) => method),
      ['POST', 'GET'],
    );
  });
});
