/** Node deployment where a whole program is too much: what no API server stores, and caches that lag behind. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CsiProvisionerOptions } from '../../../../src/csi/csi-provisioner-options.ts';
import { identityKey, nodeOfIdentity, provisionerIdentity } from '../../../../src/csi/identity.ts';
import { CsiProvisioner } from '../../../../src/csi/csi-provisioner.ts';
import { driverMigration } from '../../../../src/csi/migration/driver-migration.ts';
import { NodeDeployment } from '../../../../src/csi/node-deployment/node-deployment.ts';
import { staticNodes } from '../../../../src/csi/topology/topology-nodes.ts';
import { silentLogger } from '../../../../src/base/logger.ts';
import type { KubeObject } from '../../../../src/kube/kube-object.ts';
import { Store } from '../../../../src/kube/cache/store.ts';
import { claimUid } from '../../../../src/provision/claim-fields.ts';
import { uidIndex } from '../../../../src/provision/cache/informers.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../../src/provision/objects.ts';
import { ManualClock } from '../../../support/fakes/manual-clock.ts';
import { patienceMs } from '../../../support/patience.ts';
import type { TopologyHook } from '../../../../src/csi/topology/planned-topology.ts';
import { driverName, makeClaim, makeClass, Rig, uid } from '../../../support/csi-rig.ts';

const claimPath = '/api/v1/namespaces/ns1/persistentvolumeclaims/c1';
const nodeKey = 'volume.kubernetes.io/selected-node';

/** The hook alone, on a rig's driver and API, with caches that only the test changes. */
class Bench implements AsyncDisposable {
  readonly rig: Rig;
  readonly node: NodeDeployment;
  readonly clock = new ManualClock();
  readonly claims = new Store<PersistentVolumeClaim>({
    logger: silentLogger,
    freeze: true,
    indexers: { [uidIndex]: (claim) => [claimUid(claim)] },
  });
  readonly woken: string[] = [];
  connected = true;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(rig: Rig, topology?: TopologyHook, storageClass = makeClass()) {
    this.rig = rig;
    rig.classes.set(storageClass);
    this.node = new NodeDeployment({
      nodeName: 'n1',
      immediateBinding: true,
      baseDelayMs: 2000,
      maxDelayMs: 5000,
      nodeInfo: () => ({ nodeId: 'n1', segments: undefined }),
      getCapacity: (request, options) => rig.calls.getCapacity(request, options),
      driverConnected: () => this.connected,
      settings: { ...rig.settings, claims: this.claims, topology },
      workers: 2,
      random: () => 0.5,
      clock: this.clock,
    });
    this.node.onClaimChanged((claim) => this.woken.push(claim));
    this.#running = this.node.run({ stop: this.#stop.signal });
  }

  /** Tells the node to end; resolves when it has. Safe to repeat. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.rig[Symbol.asyncDispose]();
  }
}

/** Moves time until the call has arrived, and lets the answer come back. */
async function until(bench: Bench, what: () => boolean): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (!what()) {
    if (performance.now() > deadline) throw new Error(`waited in vain for: ${what.toString()}`);
    await bench.clock.settle();
  }
}

const puts = ({ rig }: Bench): unknown[] =>
  rig.api.requests
    .filter(({ method }) => method === 'PUT')
    .map(({ body }) => (body as KubeObject).metadata.annotations?.[nodeKey]);

/** A bench whose cache holds a claim that the API has, too. */
async function bench(
  claim = makeClaim(),
  topology?: TopologyHook,
  options: { storageClass?: StorageClass; settings?: Partial<CsiProvisionerOptions>; timeoutMs?: number } = {},
): Promise<Bench> {
  const plugin = ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'];
  const { storageClass, ...more } = options;
  const made = new Bench(await Rig.start({ plugin, ...more }), topology, storageClass);
  made.rig.driver.always('GetCapacity', { available_capacity: 0 });
  made.claims.set(made.rig.api.put(claimPath, claim) as unknown as PersistentVolumeClaim);
  return made;
}

const roomy = { available_capacity: '99999999999999' };

describe('NodeDeployment, for a driver that replaced an in-tree plugin', () => {
  const settings = { migration: driverMigration('ebs.csi.aws.com') };
  const more = { provisioner: 'kubernetes.io/aws-ebs' };
  const asked: unknown[] = [];
  const topology: TopologyHook = {
    requirements: ({ allowedTopologies }) => {
      asked.push(allowedTopologies);
      throw new Error('not here');
    },
  };

  test('the zones of the class decide in the words of the driver', async () => {
    const storageClass = makeClass({ zone: 'a' }, more);
    await using it = await bench(makeClaim(), topology, { storageClass, settings });
    assert.equal(await it.node.ownsClaim(makeClaim(), undefined), false);
    assert.deepEqual(asked, [[{ matchLabelExpressions: [{ key: 'topology.ebs.csi.aws.com/zone', values: ['a'] }] }]]);
    assert.equal(it.node.contested, 0);
  });

  test('a class that cannot be translated is no reason to leave its claims to nobody', async () => {
    const allowedTopologies = [{ matchLabelExpressions: [{ key: 'z', values: ['b'] }] }];
    const storageClass = makeClass({ zone: 'a' }, { ...more, allowedTopologies });
    await using it = await bench(makeClaim(), topology, { storageClass, settings });
    assert.equal(await it.node.ownsClaim(makeClaim(), undefined), false);
    await it.clock.advance(1000);
    await until(it, () => puts(it).length === 1);
    assert.deepEqual(puts(it), ['n1']);
  });
});

describe('NodeDeployment', () => {
  test('a claim whose class the cache does not show yet is waited for with the class at hand', async () => {
    const storageClass = makeClass({}, { metadata: { name: 'older' } });
    await using it = await bench(makeClaim(), undefined, { storageClass });
    assert.equal(await it.node.ownsClaim(makeClaim(), makeClass()), false);
    assert.equal(it.node.contested, 1);
  });

  test('a claim that asks for nothing is taken without a question', async () => {
    await using it = await bench(makeClaim({ resources: { requests: { storage: '0' } } }));
    assert.equal(await it.node.ownsClaim(makeClaim({ resources: { requests: { storage: '0' } } }), undefined), false);
    await it.clock.advance(1000);
    await until(it, () => puts(it).length === 1);
    assert.deepEqual(puts(it), ['n1']);
    assert.deepEqual(it.rig.driver.callsOf('GetCapacity'), []);
  });

  test('the claim is read live before it is written, so that a cache that lags behind costs nothing', async () => {
    await using it = await bench();
    it.rig.driver.always('GetCapacity', roomy);
    it.rig.api.put(claimPath, makeClaim({}, { labels: { unseen: 'change' } }));
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await until(it, () => it.node.contested === 0);
    assert.deepEqual(puts(it), ['n1']);
    const { metadata } = it.rig.api.get(claimPath)!;
    assert.deepEqual([metadata.annotations?.[nodeKey], metadata.labels], ['n1', { unseen: 'change' }]);
  });

  for (const { name, change } of [
    {
      name: 'has an owner',
      change: (it: Bench) => void it.rig.api.put(claimPath, makeClaim({}, { annotations: { [nodeKey]: 'n2' } })),
    },
    { name: 'was recreated', change: (it: Bench) => void it.rig.api.put(claimPath, makeClaim({}, { uid: 'other' })) },
    { name: 'is gone', change: (it: Bench) => it.rig.api.remove(claimPath) },
  ]) {
    test(`a claim that after a conflict ${name} is left alone`, async () => {
      await using it = await bench();
      it.rig.driver.always('GetCapacity', roomy);
      it.rig.api.fail({ method: 'PUT', path: claimPath, code: 409, reason: 'Conflict', message: 'changed' });
      await it.node.ownsClaim(makeClaim(), undefined);
      await it.clock.advance(1000);
      await until(it, () => puts(it).length === 1 && it.clock.pending > 0);
      change(it);
      await it.clock.advance(3000);
      await until(it, () => it.node.contested === 0);
      assert.equal(puts(it).length, 1);
      assert.deepEqual(it.woken, []);
    });
  }

  test('the capacity check asks about each topology, and records no event', async () => {
    const topology: TopologyHook = {
      requirements: () => ({ requisite: [{ segments: { z: 'a' } }, { segments: { z: 'b' } }], preferred: [] }),
    };
    await using it = await bench(makeClaim(), topology);
    it.rig.driver.next('GetCapacity', { available_capacity: 0 }, roomy);
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await until(it, () => puts(it).length === 1);
    const topologies = it.rig.driver.callsOf('GetCapacity').map(({ request }) => request['accessible_topology']);
    assert.deepEqual(topologies, [{ segments: { z: 'a' } }, { segments: { z: 'b' } }]);
    assert.deepEqual(it.rig.events, []);
  });

  test('a failure is reported once, and then the claim is waited for again', async () => {
    await using it = await bench();
    it.rig.driver.always('GetCapacity', roomy);
    it.rig.api.fail({ method: 'PUT', path: claimPath, code: 403, reason: 'Forbidden', message: 'no' });
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await until(it, () => it.woken.length === 1);
    assert.deepEqual(it.woken, [uid]);
    const message = /^PVC ns1\/c1: selecting node "n1" for PVC failed: /;
    await assert.rejects(it.node.ownsClaim(makeClaim(), undefined), { message });
    await assert.rejects(it.node.ownsClaim(makeClaim(), makeClass()), { message });
    assert.equal(await it.node.ownsClaim(makeClaim(), undefined), false);
    assert.equal(it.node.contested, 1);
  });

  test('a node whose driver is away leaves the claim to others until it is back, and waits no longer for it then', async () => {
    await using it = await bench();
    it.rig.driver.always('GetCapacity', roomy);
    it.connected = false;
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await until(it, () => it.rig.driver.callsOf('GetCapacity').length === 1 && it.clock.pending > 0);
    assert.deepEqual(puts(it), []);
    it.connected = true;
    await it.clock.advance(1000);
    await until(it, () => puts(it).length === 1);
    assert.deepEqual(puts(it), ['n1']);
  });

  test('a node that ends while it asks for the room leaves the claim to others', async () => {
    await using it = await bench();
    const answer = Promise.withResolvers<object>();
    it.rig.driver.always('GetCapacity', () => answer.promise);
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await it.rig.driver.called('GetCapacity');
    const ended = it.stop();
    answer.resolve(roomy);
    await ended;
    assert.deepEqual([puts(it), it.clock.pending], [[], 0]);
  });

  test('a node that ends does not wait for a driver that does not say how much room it has', async () => {
    await using it = await bench(makeClaim(), undefined, { timeoutMs: 1_200_000 });
    it.rig.driver.always('GetCapacity', () => new Promise(() => undefined));
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await it.rig.driver.called('GetCapacity');
    await it.stop();
    assert.deepEqual([puts(it), it.woken, it.clock.pending], [[], [], 0]);
  });

  test('a conflict at the very end is not waited out', async () => {
    await using it = await bench();
    it.rig.driver.always('GetCapacity', roomy);
    const conflict = { method: 'PUT', path: claimPath, code: 409, reason: 'Conflict', message: 'changed' };
    it.rig.api.fail({ ...conflict, before: () => void it.stop() });
    await it.node.ownsClaim(makeClaim(), undefined);
    await it.clock.advance(1000);
    await until(it, () => puts(it).length === 1);
    await it.stop();
    assert.deepEqual([puts(it), it.clock.pending, it.node.contested], [['n1'], 0, 0]);
  });

  test('a claim that is forgotten is no longer waited for', async () => {
    await using it = await bench();
    await it.node.ownsClaim(makeClaim(), undefined);
    assert.equal(it.clock.pending, 1);
    it.node.forgetClaim(uid);
    assert.deepEqual([it.clock.pending, it.node.contested], [0, 0]);
  });
});

describe('staticNodes', () => {
  const nodes = staticNodes({
    driverName,
    nodeName: 'n1',
    nodeInfo: () => ({ nodeId: 'id', segments: { b: '2', a: '1' } }),
  });

  test('make the own node of what the driver says', () => {
    assert.deepEqual(nodes.nodes.get('n1'), { metadata: { name: 'n1', labels: { b: '2', a: '1' } } });
    assert.deepEqual(nodes.csiNodes.get('n1')?.spec.drivers, [
      { name: driverName, nodeID: 'id', topologyKeys: ['b', 'a'] },
    ]);
    assert.equal([...nodes.nodes.list()].length, 1);
  });

  test('know no other node', () => {
    assert.deepEqual([nodes.nodes.get('n2'), nodes.csiNodes.get('n2')], [undefined, undefined]);
    assert.throws(() => nodes.nodes.byIndex('any', 'n1'), { message: 'there is no index any' });
  });

  test('have no labels where the driver has no topology', () => {
    const bare = staticNodes({ driverName, nodeName: 'n1', nodeInfo: () => ({ nodeId: 'id', segments: undefined }) });
    assert.deepEqual(bare.nodes.get('n1')?.metadata.labels, {});
    assert.deepEqual(bare.csiNodes.get('n1')?.spec.drivers?.[0]?.topologyKeys, []);
  });
});

describe('nodeOfIdentity', () => {
  const of = (nodeName?: string): string => provisionerIdentity({ driverName, wallMs: 1, random: 0, nodeName });
  const cases = [
    { name: 'a node', identity: of('n1'), node: 'n1' },
    { name: 'a node whose name begins like another', identity: of('a-n1'), node: 'a-n1' },
    { name: 'a central deployment', identity: of(), node: '' },
    { name: 'another driver', identity: '1-2-other-n1', node: undefined },
    { name: 'no identity', identity: undefined, node: undefined },
    { name: 'an old identity without numbers', identity: `${driverName}-n1`, node: undefined },
  ];
  for (const { name, identity, node } of cases) {
    test(name, () => assert.equal(nodeOfIdentity(identity, driverName), node));
  }
});

describe('a volume is made elsewhere', () => {
  const volume = (identity: string): PersistentVolume => ({
    metadata: { name: 'v' },
    spec: { csi: { driver: driverName, volumeHandle: 'h', volumeAttributes: { [identityKey]: identity } } },
  });
  for (const [nodeName, elsewhere] of [
    ['n1', false],
    ['n2', true],
    [undefined, true],
  ] as const) {
    test(`when the instance that its identity names is another one: ${nodeName ?? 'that of the whole cluster'}`, async () => {
      await using it = await bench();
      const { isElsewhere } = new CsiProvisioner({ ...it.rig.settings, node: it.node });
      const identity = provisionerIdentity({ driverName, wallMs: 1, random: 0, nodeName });
      assert.deepEqual(
        [identity, 'of something else'].map((each) => isElsewhere?.(volume(each))),
        [elsewhere, false],
      );
    });
  }

  test('never without node deployment', async () => {
    await using it = await bench();
    assert.equal(new CsiProvisioner({ ...it.rig.settings, node: undefined }).isElsewhere, undefined);
  });
});
