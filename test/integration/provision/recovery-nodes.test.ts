/** The selected node of a claim changes: only a plan that was never fulfilled follows it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { annotation, type Rig } from './rig.ts';
import { leftRecord, recoveryScene, type RecoverySceneOptions } from './recovery-scene.ts';
import { ScriptedPermit } from './scripted-permit.ts';
import { neverSent, noRoom, unclear } from './scripted-backend.ts';

const nodeOf = (node: string | undefined): object => ({
  annotations: { [annotation.provisioner]: 'drv', ...(node !== undefined && { [annotation.node]: node }) },
});

/** A claim for which a node is selected. */
async function selectedScene(options: RecoverySceneOptions = {}) {
  const scene = await recoveryScene(options);
  const { rig, backend } = scene;
  const select = (node: string | undefined): void => void rig.changeClaim('a', nodeOf(node));
  select('n1');
  return {
    ...scene,
    select,
    /** Selects another node, and waits until the controller knows it. */
    reselect: async (node: string | undefined): Promise<void> => {
      select(node);
      await rig.until('the node in the cache', () => cachedNode(rig) === node);
    },
    /** The nodes of the plans that were fulfilled. */
    asked: () => backend.fulfils.map(({ plan }) => plan.node),
  };
}

function cachedNode(rig: Rig): string | undefined {
  return rig.claimInCache('a')?.metadata.annotations?.[annotation.node];
}

describe('a claim whose plan was not fulfilled', () => {
  test('gets a new plan for the node that was selected before the record was written', async () => {
    const scene = await selectedScene();
    await using rig = scene.rig;
    const { backend, journal, reselect, asked, seen } = scene;
    const written = Promise.withResolvers<undefined>();
    journal.onPut = () => written.promise;
    rig.startOnly();
    await rig.until('the plan', () => backend.plans.length === 1);
    await reselect('n2');
    written.resolve(undefined);
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(asked(), ['n2']);
    assert.deepEqual(
      backend.plans.map(({ node }) => node),
      ['n1', 'n2'],
    );
    assert.deepEqual(backend.revokes, []);
    await scene.closed();
    assert.deepEqual(journal.writes, ['put create', 'remove', 'put create', 'remove']);
    assert.ok(!rig.reasons.includes('ProvisioningFailed'));
    assert.deepEqual(seen.reported, []);
  });

  test('is not provisioned when its node was removed meanwhile, until another one is selected', async () => {
    const scene = await selectedScene({ class: { volumeBindingMode: 'WaitForFirstConsumer' } });
    await using rig = scene.rig;
    const { backend, journal, reselect, asked } = scene;
    const written = Promise.withResolvers<undefined>();
    journal.onPut = () => written.promise;
    rig.startOnly();
    await rig.until('the plan', () => backend.plans.length === 1);
    await reselect(undefined);
    written.resolve(undefined);
    await rig.settle();
    await scene.closed();
    assert.deepEqual(asked(), []);
    await reselect('n2');
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(asked(), ['n2']);
  });

  test('with a value that is too long for the name of a node is still provisioned', async () => {
    const long = 'n'.repeat(10_000);
    const scene = await recoveryScene();
    await using rig = scene.rig;
    rig.changeClaim('a', nodeOf(long));
    await rig.start();
    assert.deepEqual(
      scene.backend.fulfils.map(({ plan }) => plan.node),
      [long],
    );
    assert.equal(rig.volumes.length, 1);
  });

  test('because the process was paused before it sent anything gets a new plan', async () => {
    const permit = new RefusingPermit();
    const scene = await selectedScene({ rig: { controller: { permit } } });
    await using rig = scene.rig;
    const { backend, journal, reselect, asked, passPause } = scene;
    journal.onPut = () => {
      permit.refuse();
      return Promise.resolve();
    };
    await rig.start();
    assert.deepEqual(asked(), []);
    assert.equal(journal.records.size, 0, 'nothing was sent that could be undone');
    journal.onPut = () => Promise.resolve();
    await reselect('n2');
    await passPause();
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(asked(), ['n2']);
    assert.deepEqual(backend.revokes, []);
  });

  test('because the backend was away gets a new plan', async () => {
    const scene = await selectedScene();
    await using rig = scene.rig;
    const { backend, reselect, asked } = scene;
    backend.fulfilSteps.push(neverSent());
    await rig.start();
    await reselect('n2');
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(asked(), ['n1', 'n2']);
  });

  test('because the backend has no room gets a plan for the node that is selected next', async () => {
    const scene = await selectedScene({ class: { volumeBindingMode: 'WaitForFirstConsumer' } });
    await using rig = scene.rig;
    const { backend, select, asked } = scene;
    backend.fulfilSteps.push(noRoom());
    await rig.start();
    await rig.until('the node to go', () => rig.claim()?.metadata.annotations?.[annotation.node] === undefined);
    select('n2');
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(asked(), ['n1', 'n2']);
  });
});

describe('a plan that may have been fulfilled', () => {
  test('is kept when another node is selected, also after attempts that were never sent and after a pause', async () => {
    const permit = new RefusingPermit();
    const scene = await selectedScene({ rig: { controller: { permit } } });
    await using rig = scene.rig;
    const { backend, reselect, asked, passPause } = scene;
    backend.fulfilSteps.push(unclear(), neverSent(), neverSent(), unclear());
    await rig.start();
    await reselect('n2');
    await passPause();
    permit.refuse();
    await passPause();
    await reselect(undefined);
    await passPause();
    await reselect('n3');
    await scene.passUntil('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(new Set(asked()), new Set(['n1']));
    assert.equal(backend.plans.length, 1);
  });

  test('is that of the record of another process if one is found while the claim is planned', async () => {
    const scene = await selectedScene();
    await using rig = scene.rig;
    const { backend, journal, uid, since, name, asked } = scene;
    const recorded: unknown[] = [];
    journal.onPut = ({ plan }) => {
      recorded.push(plan['node']);
      return Promise.resolve();
    };
    const planning = Promise.withResolvers<undefined>();
    const plan = backend.plan.bind(backend);
    backend.plan = async (options) => {
      await planning.promise;
      return plan(options);
    };
    rig.startOnly();
    await rig.until('the start', () => rig.reasons.includes('Provisioning'));
    const theirs = leftRecord(uid, { since, plan: { name, parameters: {}, node: 'n0' } });
    journal.listener.onFound({ record: theirs, owner: 'foreign' });
    planning.resolve(undefined);
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.ok(rig.reasons.includes('ProvisioningWaiting'));
    assert.deepEqual(asked(), ['n0']);
    assert.deepEqual(recorded, ['n0'], 'taken over');
  });

  test('is kept for a record that an earlier process left, whether or not it sent a request', async () => {
    const plan = (uid: string) => ({ name: `pvc-${uid}`, parameters: {}, node: 'n0' });
    const scene = await selectedScene({
      found: (uid) => [{ record: leftRecord(uid, { plan: plan(uid) }), owner: 'own' }],
    });
    await using rig = scene.rig;
    await rig.start();
    await rig.until('the volume', () => rig.volumes.length === 1);
    assert.deepEqual(scene.asked(), ['n0']);
    assert.deepEqual(scene.backend.plans, []);
  });
});

/** A permit that is refused once, as for a process that has lost its lease, and is valid again after that. */
class RefusingPermit extends ScriptedPermit {
  refuse(): void {
    this.lose(() => {
      this.isValid = true;
      throw new Error('the lease is lost');
    });
  }
}

test('no room for the node that was selected first leaves the one that is selected now', async () => {
  const scene = await selectedScene({ class: { volumeBindingMode: 'WaitForFirstConsumer' } });
  await using rig = scene.rig;
  const { backend, reselect } = scene;
  backend.fulfilSteps.push(unclear());
  backend.otherwiseFulfil = (plan) =>
    plan.node === 'n1' ? Promise.reject(noRoom()) : Promise.resolve(backend.make(plan.name, plan.parameters));
  await rig.start();
  await reselect('n2');
  const nodes = new Set<string | undefined>();
  await scene.passUntil('the end', () => {
    nodes.add(rig.claim()?.metadata.annotations?.[annotation.node]);
    return rig.volumes.length === 1 || nodes.has(undefined);
  });
  assert.deepEqual([...nodes], ['n2']);
});
