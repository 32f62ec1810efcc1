import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { annotation, Rig } from './rig.ts';

const notes = 'x'.repeat(200_000);
const claimPath = '/api/v1/namespaces/ns/persistentvolumeclaims/a';

/** The number of requests that read only the claim `ns/a`. */
const readsOf = (rig: Rig): number =>
  rig.wire.requests.filter(({ method, path }) => method === 'GET' && path.split('?')[0] === claimPath).length;

describe('a claim that is too large for the cache', () => {
  test('reaches the provisioner whole, after one read', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    const annotations = { [annotation.provisioner]: 'drv', notes };
    const { uid } = rig.addClaim('a', { annotations }).metadata;
    await rig.start();
    const [call] = rig.provisioner.provisions;
    assert.equal(call?.claim.metadata.annotations?.['notes'], notes);
    assert.equal(readsOf(rig), 1);
    assert.deepEqual(rig.volumes.map(({ spec }) => spec.claimRef?.uid), [uid]); // prettier-ignore
  });

  test("is not read while it is another provisioner's, and is read once it becomes ours", async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    rig.addClaim('a', { annotations: { [annotation.provisioner]: 'other', notes } });
    await rig.start();
    assert.deepEqual([rig.provisioner.provisions.length, readsOf(rig)], [0, 0]);
    rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv', notes } });
    await rig.settle();
    assert.deepEqual([rig.provisioner.provisions.length, readsOf(rig)], [1, 1]);
  });

  test('is not read while it waits for a node, and has the node that was selected', async () => {
    await using rig = await Rig.prepare();
    rig.addClass('c1', { volumeBindingMode: 'WaitForFirstConsumer' });
    rig.addClaim('a', { annotations: { [annotation.provisioner]: 'drv', notes } });
    await rig.start();
    assert.deepEqual([rig.provisioner.provisions.length, readsOf(rig)], [0, 0]);
    rig.changeClaim('a', { annotations: { [annotation.provisioner]: 'drv', [annotation.node]: 'n1', notes } });
    await rig.settle();
    assert.deepEqual(rig.provisioner.provisions.map(({ selectedNodeName }) => selectedNodeName), ['n1']); // prettier-ignore
  });

  test('is read whole also if the cache lacks its class, which is then read, too', async () => {
    await using rig = await Rig.prepare();
    const match = { resource: 'storageclasses', watch: true };
    rig.fault({ match, action: { type: 'noWatchList' }, times: 1 });
    rig.fault({ match, action: { type: 'watchStall' } });
    await rig.start();
    rig.addClass();
    rig.addClaim('a', { annotations: { [annotation.provisioner]: 'drv', notes } });
    await rig.settle();
    assert.equal(rig.provisioner.provisions[0]?.claim.metadata.annotations?.['notes'], notes);
  });

  test('that is gone, or has been recreated, when it is read gets no volume', async () => {
    await using rig = await Rig.prepare();
    rig.addClass();
    const { uid } = rig.addClaim('a', {
      annotations: { [annotation.provisioner]: 'drv', notes },
      finalizers: [],
    }).metadata;
    rig.fault({
      match: { verb: 'get', resource: 'persistentvolumeclaims' },
      action: { type: 'delay', ms: 1000 },
      times: 1,
    });
    rig.startOnly();
    await rig.until('the read of the claim', () => readsOf(rig) > 0);
    rig.deleteClaim();
    rig.addClaim('a', { annotations: { [annotation.provisioner]: 'other' } });
    await rig.synced(uid);
    assert.deepEqual([rig.provisioner.provisions, rig.volumes], [[], []]);
  });
});
