/** Which volumes an instance deletes in node deployment. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { freePort } from '../../../support/free-ports.ts';
import { driverName } from '../../../support/api-scene.ts';
import { NodeScene, topologyKey, volumeFinalizer } from './node-scene.ts';

const on = (...values: string[]) => ({ matchExpressions: [{ key: topologyKey, operator: 'In', values }] });
const madeBy = (suffix: string): string => `1763640000000-1234-${driverName}${suffix}`;

describe('node deployment, deleting', () => {
  for (const { name, sketch } of [
    { name: 'a volume with the topology of the node is deleted', sketch: { affinity: on('n1') } },
    { name: 'a volume without topology is deleted', sketch: {} },
    {
      name: 'a volume with several topologies, that of the node among them, is deleted',
      sketch: { affinity: on('n1', 'n2') },
    },
    {
      name: 'a volume that was made here is deleted although the driver names its topology otherwise by now',
      sketch: { affinity: on('old-name'), identity: madeBy('-n1') },
    },
  ]) {
    test(name, async () => {
      await using scene = await NodeScene.start();
      scene.addVolume('pv', 'Released', sketch);
      await scene.until('the deletion', () => scene.isDeleted('pv'));
      assert.deepEqual(scene.driver().callsOf('DeleteVolume')[0]?.request['volume_id'], 'handle-pv');
    });
  }

  test('a volume of another topology is left alone, and counted as the original counts it', async () => {
    const address = `127.0.0.1:${await freePort()}`;
    await using scene = await NodeScene.start({ flags: [`--http-endpoint=${address}`] });
    scene.addVolume('pv', 'Released', { affinity: on('n2'), identity: madeBy('-n2') });
    await scene.program().logged('PV was not provisioned on this node');
    await scene.volumesLooked();
    assert.equal(scene.calls('DeleteVolume'), 1); // the sentinel's
    assert.deepEqual(scene.events('pv'), []);
    assert.equal(scene.isDeleted('pv'), false);
    const line = 'controller_persistentvolume_delete_total{class="late"}';
    const page = await (await fetch(`http://${address}/metrics`)).text();
    assert.ok(page.includes(`${line} 2`), 'the ignored one and the sentinel');
  });

  test('of two nodes the one that will delete an attached volume reports what it waits for', async () => {
    const controller = ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'];
    await using scene = await NodeScene.start({ nodes: ['n1', 'n2'], controller });
    scene.addAttachment('pv', 'n2');
    scene.addVolume('pv', 'Released', { affinity: on('n2') });
    await scene.program('n1').logged('PV was not provisioned on this node');
    await scene.event('VolumeDelete', 'pv');
    await scene.volumesLooked();
    assert.deepEqual(
      scene.events('pv').map(({ reason, count }) => `${reason} ${count}`),
      ['VolumeDelete 1'],
    );
    assert.equal(scene.isDeleted('pv'), false);
  });

  test('the finalizer is put on volumes of all nodes', async () => {
    await using scene = await NodeScene.start();
    scene.addVolume('pv', 'Bound', { affinity: on('n2'), finalizers: [] });
    await scene.until('the finalizer', () => scene.finalizersOf('pv').includes(volumeFinalizer));
    await scene.volumesLooked();
    assert.equal(scene.isDeleted('pv'), false);
  });

  test('a volume whose topology cannot be read has an event that says so', async () => {
    await using scene = await NodeScene.start();
    scene.addVolume('pv', 'Released', {
      affinity: { matchExpressions: [{ key: topologyKey, operator: 'Gt', values: ['x'] }] },
    });
    const { message } = await scene.event('VolumeFailedDelete', 'pv');
    assert.match(message, /^checking volume affinity failed: nodeSelectorTerms\[0\]\.matchExpressions\[0\]\.values/);
    assert.equal(scene.calls('DeleteVolume'), 0);
  });

  test('of two nodes the right one deletes', async () => {
    await using scene = await NodeScene.start({ nodes: ['n1', 'n2'] });
    scene.addVolume('a', 'Released', { affinity: on('n1') });
    scene.addVolume('b', 'Released', { affinity: on('n2') });
    await scene.until('both deletions', () => scene.isDeleted('a') && scene.isDeleted('b'));
    const deleted = (node: string): unknown[] =>
      scene
        .driver(node)
        .callsOf('DeleteVolume')
        .map(({ request }) => request['volume_id']);
    assert.deepEqual([deleted('n1'), deleted('n2')], [['handle-a'], ['handle-b']]);
  });

  test('without topology only what was made here is deleted', async () => {
    await using scene = await NodeScene.start({ topology: false });
    const volumes = { own: '-n1', other: '-n2', similar: '-x-n1', central: '' };
    for (const [name, suffix] of Object.entries(volumes))
      scene.addVolume(name, 'Released', { identity: madeBy(suffix) });
    scene.addVolume('nameless', 'Released');
    await scene.until('the deletion', () => scene.isDeleted('own'));
    await scene.volumesLooked(madeBy('-n1'));
    assert.deepEqual(
      [...Object.keys(volumes), 'nameless'].filter((name) => scene.isDeleted(name)),
      ['own'],
    );
    const warnings = scene.program().lines.filter((line) => line.includes('no instance will delete it'));
    assert.deepEqual(warnings.map((line) => /volume="(\w+)"/.exec(line)?.[1]).toSorted(), ['central', 'nameless']);
  });
});
