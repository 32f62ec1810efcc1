/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** API servers of two versions on one etcd, as during the upgrade of a highly available control plane. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test, type TestContext } from 'node:test';
import type { V1PersistentVolumeClaim } from '@kubernetes/client-node';
import { connectAdmin, type Admin } from '../support/admin.ts';
import type { ServerPair } from '../support/cluster.ts';
import type { AuditEvent } from '../support/control-plane/audit-log.ts';
import { kubernetesVersion } from '../support/control-plane/programs.ts';
import { openScene, type Scene, type SceneOptions } from '../support/scene.ts';
import { allBound, assertMadeOnce, minorOf, missingVersion } from './coming-claims.ts';

const newer = (await kubernetesVersion()).replace(/\.\d+$/, '');

interface MixedScene extends Scene {
  pair: ServerPair;
  /** The administrator of each server. */
  admins: [Admin, Admin];
}

/** Opens a scene with two API servers for the tests of a suite. */
function useScene(options: SceneOptions): { readonly scene: MixedScene } {
  let scene: Scene;
  before(async () => {
    // Servers learn of new rights by a watch: the one that is behind refuses what the other one allows.
    scene = await openScene({ restartsApiServer: true, ...options });
  });
  afterEach((context) => scene.report(context));
  after(() => scene.close());
  return {
    get scene() {
      const pair = scene.cluster.serverPair;
      assert.ok(pair);
      const [first, second] = pair.servers;
      const admins: [Admin, Admin] = [connectAdmin(first.adminKubeconfig), connectAdmin(second.adminKubeconfig)];
      return Object.assign(scene, { pair, admins });
    },
  };
}

/** Creates a class of the scene's driver through one of the servers. @returns its name. */
async function createAttributesClass({ objects }: Admin, scene: Scene, version: string): Promise<string> {
  const name = `${scene.namespace}-gold`;
  await objects.create({
    apiVersion: `storage.k8s.io/${version}`,
    kind: 'VolumeAttributesClass',
    metadata: { name },
    ...{ driverName: scene.driver.driverName, parameters: { tier: 'gold' } },
  });
  return name;
}

/** The requests of the sidecar that each server has answered. */
async function requestsOfSidecar({ servers }: ServerPair): Promise<AuditEvent[][]> {
  const found: AuditEvent[][] = [];
  for (const server of servers) {
    const requests: AuditEvent[] = [];
    for await (const event of server.requests()) {
      if (event.user.username === 'system:serviceaccount:default:csi-provisioner') requests.push(event);
    }
    found.push(requests);
  }
  return found;
}

/** Asserts that claims with this class, and no others, got a volume with it and its parameters. */
async function assertClassKept(
  scene: Scene,
  { claims, className }: { claims: readonly V1PersistentVolumeClaim[]; className: string },
): Promise<void> {
  const calls = await scene.driver.calls('CreateVolume');
  for (const { spec, status, metadata } of claims) {
    const name = spec?.volumeName ?? '';
    const volume = await scene.admin.core.readPersistentVolume({ name });
    const wanted = spec?.volumeAttributesClassName;
    assert.equal(volume.spec?.volumeAttributesClassName, wanted, metadata?.name);
    assert.equal(status?.currentVolumeAttributesClassName, wanted, metadata?.name);
    const sent = calls.find(({ request }) => request.name === name)?.request.mutable_parameters ?? {};
    assert.deepEqual(sent, wanted === className ? { tier: 'gold' } : {}, metadata?.name);
  }
}

/** Asserts that no cache was listed more often than its connection was closed, and that both servers had work. */
async function assertFewLists(
  t: TestContext,
  { pair, closures }: { pair: ServerPair; closures: number },
): Promise<void> {
  const lists = new Map<string, number>();
  for (const requests of await requestsOfSidecar(pair)) {
    const created = requests.filter(
      ({ verb, objectRef }) => `${verb} ${objectRef?.resource ?? ''}` === 'create persistentvolumes',
    );
    const watches = requests.filter(({ verb }) => verb === 'watch');
    assert.ok(created.length > 0 && watches.length > 0, 'a server had no work');
    for (const { verb, stage, requestURI, objectRef } of requests) {
      const { searchParams } = new URL(requestURI, 'https://localhost');
      if (searchParams.get('fieldSelector')?.startsWith('metadata.name=') === true) continue; // of a single object
      const isList = verb === 'list' && !searchParams.has('continue');
      const isStreamedList = verb === 'watch' && stage === 'ResponseStarted' && searchParams.has('sendInitialEvents');
      const resource = objectRef?.resource ?? '';
      if (isList || isStreamedList) lists.set(resource, (lists.get(resource) ?? 0) + 1);
    }
  }
  t.diagnostic(`lists with ${closures} closures: ${JSON.stringify(Object.fromEntries(lists))}`);
  assert.ok(lists.has('persistentvolumeclaims') && lists.has('persistentvolumes'));
  for (const [resource, count] of lists) assert.ok(count <= 1 + closures, `${resource} was listed ${count} times`);
}

const electionFlags = [
  '--leader-election',
  '--leader-election-retry-period=500ms',
  '--leader-election-renew-deadline=120s',
  '--leader-election-lease-duration=150s',
];

const mixtures: { first: string; second: string; attributesClasses?: 'v1beta1'; title: string }[] = [
  { first: newer, second: '1.32', attributesClasses: 'v1beta1', title: 'which has attributes classes in v1beta1' },
  { first: newer, second: '1.32', title: 'which has no attributes classes' },
  { first: '1.34', second: newer, title: 'while the controllers are not upgraded' },
];
for (const { first, second, attributesClasses, title } of mixtures) {
  const skip = await missingVersion([first, second]);
  describe(`an API server of ${first} beside one of ${second}, ${title}`, { skip }, () => {
    const suite = useScene({
      cluster: {
        kubernetes: first,
        secondServer: { kubernetes: second, ...(attributesClasses && { attributesClasses }) },
      },
      rbac: ['components/attributes-classes/rbac.yaml', 'components/leader-election/rbac.yaml'],
      sidecarFlags: ['--worker-threads=10', ...electionFlags],
    });

    test('serves each claim once, with its class, while connections to either are closed', async (t) => {
      const { scene } = suite;
      const { pair, driver, admin } = scene;
      assert.deepEqual(await Promise.all(scene.admins.map(minorOf)), [first, second]);
      const gold = await createAttributesClass(admin, scene, 'v1');
      const className = await scene.createClass();
      const create = async (name: string, isGold: boolean): Promise<void> => {
        await scene.createClaim({ className, name, spec: isGold ? { volumeAttributesClassName: gold } : {} });
      };
      const early = Array.from({ length: 6 }, (_, index) => `early-${index}`);
      for (const [index, name] of early.entries()) await create(name, index % 2 === 0);
      const deleted: string[] = [];
      for (const name of early) deleted.push((await scene.bound(name)).volume.metadata?.name ?? '');

      let closures = 0;
      for (let index = 0; index < 60; index++) {
        await create(`coming-${index}`, index % 3 === 0);
        if (index % 10 === 5) await scene.deleteClaim(early[(index - 5) / 10] ?? '');
        if (index % 8 !== 7) continue;
        pair.balancer.closeConnections();
        closures += 1;
      }
      for (const name of deleted) await scene.volumeGone(name);
      const claims = await allBound({ scene, count: 60 });
      await assertMadeOnce({ scene, claims, deleted });
      await assertClassKept(scene, { claims, className: gold });

      const lease = await admin.coordination.readNamespacedLease({
        name: driver.driverName.replaceAll(/[^a-zA-Z0-9-]/g, '-'),
        namespace: scene.cluster.sidecarNamespace,
      });
      assert.ok(lease.spec?.holderIdentity);
      assert.equal(lease.spec.leaseTransitions, 0);
      await assertFewLists(t, { pair, closures });
    });
  });
}

const skip = await missingVersion([newer, '1.34']);
describe('an API server that drops attributes classes beside one that keeps them', { skip }, () => {
  const suite = useScene({
    cluster: {
      kubernetes: newer,
      secondServer: { kubernetes: '1.34', dropsAttributesClasses: true },
    },
    rbac: ['components/attributes-classes/rbac.yaml'],
  });

  for (const phase of ['Available', 'Bound']) {
    test(`lets the class of a volume that is ${phase} be set by the other one alone`, async (t) => {
      const { scene } = suite;
      const { namespace, admins } = scene;
      const [keeping, dropping] = admins;
      const name = `${namespace}-${phase.toLowerCase()}`;
      const volumeAttributesClassName = 'silver';
      const saved = await dropping.core.createPersistentVolume({
        body: {
          metadata: { name },
          spec: {
            accessModes: ['ReadWriteOnce'],
            capacity: { storage: '1Gi' },
            persistentVolumeReclaimPolicy: 'Retain',
            storageClassName: name,
            csi: { driver: 'nobody.example.com', volumeHandle: name },
            volumeAttributesClassName,
          },
        },
      });
      t.after(() => keeping.core.deletePersistentVolume({ name }));
      assert.equal(saved.spec?.volumeAttributesClassName, undefined);
      if (phase === 'Bound') await scene.createClaim({ className: name, name });
      await scene.eventually(async () => {
        assert.equal((await keeping.core.readPersistentVolume({ name })).status?.phase, phase);
      });
      const patch = [{ op: 'add', path: '/spec/volumeAttributesClassName', value: volumeAttributesClassName }];
      const refused = await dropping.core.patchPersistentVolume({ name, body: patch });
      assert.equal(refused.spec?.volumeAttributesClassName, undefined);
      const accepted = await keeping.core.patchPersistentVolume({ name, body: patch });
      assert.equal(accepted.spec?.volumeAttributesClassName, volumeAttributesClassName);
      const kept = await dropping.core.patchPersistentVolume({
        name,
        body: [{ op: 'add', path: '/metadata/labels', value: { changed: 'yes' } }],
      });
      assert.equal(kept.spec?.volumeAttributesClassName, volumeAttributesClassName);
      assert.equal(kept.status?.phase, phase);
    });
  }

  test('has the claim told why it waits, and the class is set by the other one over the same address', async () => {
    const { scene } = suite;
    const { pair, admins, driver } = scene;
    const gold = await createAttributesClass(admins[0], scene, 'v1');
    pair.balancer.use(1);
    pair.balancer.closeConnections();
    const claim = await scene.createClaim({
      className: await scene.createClass(),
      spec: { volumeAttributesClassName: gold },
    });
    const claimName = claim.metadata?.name ?? '';
    const { message } = await scene.event(claim, 'ProvisioningFailed');
    const name = `pvc-${claim.metadata?.uid ?? ''}`;
    assert.ok(
      message?.includes(`PersistentVolume "${name}" was saved without its volume attributes class "${gold}"`),
      message,
    );
    assert.equal((await admins[0].core.readPersistentVolume({ name })).spec?.volumeAttributesClassName, undefined);
    assert.equal((await scene.readClaim(claimName)).status?.phase, 'Pending');

    pair.balancer.use(); // connections that are kept alive still lead to the server that drops the class
    const { volume, claim: bound } = await scene.bound(claimName);
    assert.equal(volume.spec?.volumeAttributesClassName, gold);
    await assertClassKept(scene, { claims: [bound], className: gold });
    assert.equal((await driver.calls('CreateVolume')).length, 1);
    await scene.deleteClaim(claimName);
    await scene.volumeGone(name);
  });
});
