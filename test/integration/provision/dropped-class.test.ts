/** API servers with and without attributes classes, side by side as during an upgrade. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { silentLogger } from '../../../src/base/logger.ts';
import type { PersistentVolume } from '../../../src/provision/objects.ts';
import { ClassDroppedError } from '../../../src/provision/stored-volume.ts';
import { savePersistentVolume } from '../../../src/provision/volume-store.ts';
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
      onSaved: (it) => saved.push(it),
      onTaken: unexpected,
      onDropped: unexpected,
    },
    made,
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

  test('sets the class that an API server without the feature has dropped, with the next attempt', async () => {
    await using rig = await Rig.start();
    const exists: Answer = (reply) => reply.status(409, 'AlreadyExists');
    rig.server.next({ method: 'POST', path }, volume(dropped, 201), exists, exists);
    rig.server.next({ method: 'GET', path }, listed(dropped), listed(dropped));
    const patch = { method: 'PATCH', path: `${path}/v` };
    rig.server.next(patch, volume(dropped), volume(made));
    await assert.rejects(save(rig), ClassDroppedError);
    await assert.rejects(save(rig), /"v" was saved without its volume attributes class "gold"/);
    assert.ok(await save(rig));
    assert.deepEqual(
      rig.server.matching(patch).map(({ body }) => body),
      [made, made].map(({ spec }) => ({ spec: { volumeAttributesClassName: spec.volumeAttributesClassName } })),
    );
  });

  test('leaves a volume alone that was bound without it', async () => {
    await using rig = await Rig.start();
    rig.server.next({ method: 'POST', path }, (reply) => reply.status(409, 'AlreadyExists'));
    rig.server.next({ method: 'GET', path }, listed({ ...dropped, status: { phase: 'Bound' } }));
    assert.ok(await save(rig));
    assert.deepEqual(
      rig.server.requests.map(({ method }) => method),
      ['POST', 'GET'],
    );
  });
});
