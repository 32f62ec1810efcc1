/** The whole program, what it finds out at the start and what it then does. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { status } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { createRegistry } from '../../../src/base/metrics.ts';
import { parseCommandLine } from '../../../src/cli/command-line.ts';
import { ExitError } from '../../../src/run/exit.ts';
import { controllerMetrics } from '../../../src/cli/run-phase-options.ts';
import { ApiServer, type ApiServerOptions } from '../../../sandbox/api/api-server.ts';
import type { SandboxObject, SandboxOwner } from '../../../sandbox/api/client.ts';
import type { FaultRule } from '../../../sandbox/api/faults.ts';
import { eventually } from '../../support/eventually.ts';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { ApiScene, type ApiSceneOptions, resource } from '../../support/api-scene.ts';
import { Program } from '../../support/program.ts';
import { zone } from './rig.ts';

const { pods, claims, volumes } = resource;
const replicaSets = { group: 'apps', version: 'v1', plural: 'replicasets' };
const controller = (kind: string, name: string): SandboxOwner => ({
  apiVersion: 'apps/v1',
  kind,
  name,
  uid: `uid-of-${name}`,
  controller: true,
});

interface ClusterOptions {
  api?: ApiServerOptions;
  faults?: FaultRule[];
  /** Owners of the pod; null: there is no pod. Default: StatefulSet `own`. */
  owners?: SandboxOwner[] | null;
}

/** A cluster with a class, a node and a pod, and a driver; programs are started in it. */
class Cluster extends ApiScene {
  readonly driver: RecordingDriver;

  private constructor(options: ApiSceneOptions, driver: RecordingDriver) {
    super(options);
    this.driver = driver;
  }

  static async start(options: ClusterOptions = {}): Promise<Cluster> {
    const { api, faults = [], owners = [controller('StatefulSet', 'own')] } = options;
    await using starting = new AsyncDisposableStack();
    const server = starting.use(new ApiServer({ namespaces: ['default', 'ns'], ...api }));
    const { url } = await server.start();
    for (const fault of faults) server.faults.add(fault);
    const driver = starting.use(await RecordingDriver.start({ name: 'drv' }));
    driver.always('GetCapacity', { available_capacity: 1_073_741_824 });
    const cluster = new Cluster({ server, url, opened: starting.move() }, driver);
    cluster.api.create(resource.classes, {
      metadata: { name: 'sc' },
      provisioner: 'drv',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    cluster.api.create(resource.nodes, { metadata: { name: 'n1', labels: { [zone]: 'z1' } } });
    cluster.api.create(resource.csiNodes, {
      metadata: { name: 'n1' },
      spec: { drivers: [{ name: 'drv', nodeID: 'n1', topologyKeys: [zone] }] },
    });
    if (owners !== null) {
      cluster.api.create(pods, {
        metadata: { name: 'p', namespace: 'ns', ownerReferences: owners },
        spec: { containers: [{ name: 'main', image: 'none' }] },
      });
    }
    return cluster;
  }

  run(flags: string[] = [], environment: Record<string, string> = {}, clock: Clock = systemClock): Program {
    const program = new Program({
      socketPath: this.driver.socketPath,
      apiUrl: this.url,
      clock,
      flags: ['--enable-capacity', '-v=2', '--retry-interval-start=50ms', ...flags],
      environment: { NAMESPACE: 'ns', POD_NAME: 'p', ...environment },
    });
    return this.opened.use(program);
  }

  get stored(): SandboxObject[] {
    return this.api.list(resource.capacities);
  }

  /** The only object, once it is there. */
  async object(): Promise<SandboxObject> {
    await this.until('the object', () => this.stored.length > 0);
    assert.equal(this.stored.length, 1);
    return this.stored[0]!;
  }

  /** Paths of the API that were asked for capacity objects, without their names. */
  paths(): Set<string> {
    return new Set(
      this.server.requestLog
        .entries()
        .filter(({ path, userAgent }) => path.includes('csistoragecapacities') && userAgent !== '')
        .map(({ verb, path }) => `${verb} ${path.replace(/csistoragecapacities\/.*/, 'csistoragecapacities')}`),
    );
  }
}

/** The stored objects of an API server: pod `p` with an owner that no server accepts. */
async function storedPod(t: TestContext, owner: SandboxOwner): Promise<{ path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'stored-pod-'));
  t.after(() => rm(folder, { recursive: true }));
  const metadata = { name: 'p', namespace: 'ns', uid: 'uid-of-p', resourceVersion: '1', ownerReferences: [owner] };
  const object = { apiVersion: 'v1', kind: 'Pod', metadata };
  const path = join(folder, 'objects.jsonl');
  await writeFile(path, `${JSON.stringify({ rv: 1, op: 'put', storage: 'pods', key: 'ns\0p', object })}\n`);
  return { path };
}

/** The program ends at once with code 255 and this as its last line. */
async function assertFatal(cluster: Cluster, line: string, flags: string[] = []): Promise<void> {
  const program = cluster.run(flags);
  assert.deepEqual(await program.ended, { code: 255 });
  assert.ok(program.lines.at(-1)?.includes(line), `${program.lines.at(-1) ?? ''}\nshould hold\n${line}`);
  assert.equal(cluster.driver.callsOf('GetCapacity').length, 0);
}

describe('the environment', () => {
  const cases: [environment: Record<string, string>, line: string][] = [
    [{ POD_NAME: 'p' }, 'need NAMESPACE env variable for CSIStorageCapacity objects'],
    [{ NAMESPACE: 'ns' }, 'need POD_NAME env variable to determine CSIStorageCapacity owner'],
  ];
  for (const [environment, line] of cases) {
    test(`that lacks a variable ends it: ${line}`, () => {
      const parse = () =>
        parseCommandLine({ argv0: 'x', args: ['--enable-capacity'], environment, version: 'v0.0.0-test' });
      assert.throws(parse, (error) => error instanceof ExitError && error.code === 255 && error.line === line);
    });
  }
});

describe('the owner', () => {
  test('is not found without the pod', async () => {
    await using cluster = await Cluster.start({ owners: null });
    await assertFatal(cluster, 'look up owner(s) of pod: get object: pods "p" not found');
  });

  test('is not looked for at a negative level, nor is POD_NAME needed', async () => {
    await using cluster = await Cluster.start({ owners: null });
    cluster.run(['--capacity-ownerref-level=-1'], { POD_NAME: '' });
    assert.equal((await cluster.object()).metadata.ownerReferences, undefined);
  });

  test('at level 0 is the pod', async () => {
    await using cluster = await Cluster.start();
    const program = cluster.run(['--capacity-ownerref-level=0']);
    const { uid = '' } = cluster.api.get(pods, { namespace: 'ns', name: 'p' })?.metadata ?? {};
    assert.deepEqual((await cluster.object()).metadata.ownerReferences, [
      { apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true },
    ]);
    await program.logged('using v1/Pod p as owner of CSIStorageCapacity objects');
  });

  test('at level 1 is what controls the pod, which is not itself read', async () => {
    await using cluster = await Cluster.start({
      owners: [{ ...controller('Job', 'other'), controller: false }, controller('StatefulSet', 'own')],
    });
    cluster.run();
    assert.deepEqual((await cluster.object()).metadata.ownerReferences, [controller('StatefulSet', 'own')]);
    assert.deepEqual(cluster.server.requestLog.entries({ verb: 'get', resource: 'statefulsets' }), []);
  });

  test('is not found where nothing controls the pod', async () => {
    await using cluster = await Cluster.start({ owners: [] });
    await assertFatal(
      cluster,
      'look up owner(s) of pod: v1/Pod "p" in namespace "ns" has no controlling owner, cannot unwind the ownership further',
    );
  });

  test('at level 2 is the Deployment above the ReplicaSet', async () => {
    await using cluster = await Cluster.start({ owners: [controller('ReplicaSet', 'r')] });
    cluster.api.create(replicaSets, {
      metadata: { name: 'r', namespace: 'ns', ownerReferences: [controller('Deployment', 'd')] },
      spec: { selector: { matchLabels: { a: 'b' } }, template: { metadata: { labels: { a: 'b' } } } },
    });
    cluster.run(['--capacity-ownerref-level=2']);
    assert.deepEqual((await cluster.object()).metadata.ownerReferences, [controller('Deployment', 'd')]);
  });

  test('is not found when the ReplicaSet is gone', async () => {
    await using cluster = await Cluster.start({ owners: [controller('ReplicaSet', 'r')] });
    await assertFatal(cluster, 'look up owner(s) of pod: get object: replicasets.apps "r" not found', [
      '--capacity-ownerref-level=2',
    ]);
  });

  test('is not found when a reference cannot be read', async (t) => {
    const persistence = await storedPod(t, { ...controller('StatefulSet', 'own'), apiVersion: 'a/b/c' });
    await using cluster = await Cluster.start({ owners: null, api: { persistence } });
    await assertFatal(
      cluster,
      'look up owner(s) of pod: parse OwnerReference.APIVersion: unexpected GroupVersion string: a/b/c',
    );
  });

  test('is not found when its kind is not served', async () => {
    await using cluster = await Cluster.start({ owners: [controller('Dinosaur', 'rex')] });
    const line = 'look up owner(s) of pod: get object: no matches for kind "Dinosaur" in version "apps/v1"';
    await assertFatal(cluster, line, ['--capacity-ownerref-level=2']);
  });
});

const addClaim = (cluster: Cluster): void => {
  cluster.api.create(resource.classes, { metadata: { name: 'now' }, provisioner: 'drv' });
  cluster.api.create(claims, {
    metadata: {
      name: 'c',
      namespace: 'ns',
      annotations: { 'volume.kubernetes.io/storage-provisioner': 'drv' },
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'now',
    },
  });
};
const provisioned = (cluster: Cluster) => cluster.until('a volume', () => cluster.api.list(volumes).length === 1);

describe('the requests about capacity objects', () => {
  const creates = { verb: 'create', resource: 'csistoragecapacities' };

  test('are those of v1, and none is sent to find out what is served', async () => {
    await using cluster = await Cluster.start({ api: { watchList: false } });
    cluster.run(['--capacity-poll-interval=100ms']);
    const list = (): SandboxObject[] => cluster.api.list(resource.capacities);
    await cluster.until('the object', () => list().length === 1);
    cluster.driver.always('GetCapacity', { available_capacity: 5 });
    await cluster.until('the update', () => list()[0]?.['capacity'] === '5');
    cluster.api.delete(resource.classes, { name: 'sc' });
    await cluster.until('the deletion', () => list().length === 0);
    const path = '/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities';
    const verbs = ['create', 'delete', 'list', 'update', 'watch'];
    assert.deepEqual(
      [...cluster.paths()].sort(),
      verbs.map((verb) => `${verb} ${path}`),
    );
    assert.equal(cluster.server.requestLog.entries(creates).length, 1);
  });

  test('without the right to create: it is logged and tried again, and claims are served', async () => {
    const action = { type: 'status', code: 403, reason: 'Forbidden', message: 'forbidden: no' } as const;
    await using cluster = await Cluster.start({ faults: [{ match: creates, action, times: 2 }] });
    const program = cluster.run(['--retry-interval-start=100ms']);
    await program.logged('Error syncing capacity, trying again');
    addClaim(cluster);
    await provisioned(cluster);
    assert.equal((await cluster.object()).metadata.namespace, 'ns');
  });

  test('wait for a namespace that is missing', async () => {
    await using cluster = await Cluster.start();
    const program = cluster.run(['--capacity-ownerref-level=-1'], { NAMESPACE: 'later' });
    await program
      .logged('namespaces \\"later\\" not found')
      .catch(() => program.logged('namespaces "later" not found'));
    cluster.api.create({ group: '', version: 'v1', plural: 'namespaces' }, { metadata: { name: 'later' } });
    assert.equal((await cluster.object()).metadata.namespace, 'later');
  });
});

describe('beside provisioning', () => {
  test('claims are served by a driver that reports no capacity', async () => {
    await using cluster = await Cluster.start();
    cluster.driver.always('GetCapacity', new DriverFailure(status.UNIMPLEMENTED, 'no'));
    cluster.run();
    await cluster.until('a question', () => cluster.driver.callsOf('GetCapacity').length > 1);
    addClaim(cluster);
    await provisioned(cluster);
    assert.deepEqual(cluster.stored, []);
  });

  for (const resource of ['csistoragecapacities', 'nodes', 'csinodes']) {
    test(`claims are served when ${resource} may not be read`, async () => {
      const action = { type: 'status', code: 403, reason: 'Forbidden', message: 'forbidden: no' } as const;
      await using cluster = await Cluster.start({
        faults: (['list', 'watch'] as const).map((verb) => ({ match: { verb, resource }, action })),
      });
      cluster.run();
      addClaim(cluster);
      await provisioned(cluster);
      assert.deepEqual(cluster.stored, []);
      assert.equal(cluster.driver.callsOf('GetCapacity').length, 0);
    });
  }

  test('claims are not slowed by the rate limit of capacity', async () => {
    await using cluster = await Cluster.start();
    // One request looks for the owner; the second would come a quarter of an hour later.
    cluster.run(['--kube-api-capacity-qps=0.001', '--kube-api-capacity-burst=1']);
    await cluster.until('a question', () => cluster.driver.callsOf('GetCapacity').length > 0);
    addClaim(cluster);
    await provisioned(cluster);
    assert.deepEqual(cluster.stored, []);
  });

  test('a claim that got its volume leads to a new question', async () => {
    await using cluster = await Cluster.start();
    cluster.run(['--capacity-for-immediate-binding']);
    const questions = (): number => cluster.driver.callsOf('GetCapacity').length;
    await cluster.until('one question for each of the two classes', () => questions() === 2);
    addClaim(cluster);
    await provisioned(cluster);
    await cluster.until('one because of the volume', () => questions() === 3);
  });
});

describe('in node deployment', () => {
  const cases = [
    { what: 'its segment', labels: { [zone]: 'n' }, topology: { matchLabels: { [zone]: 'n' } } },
    { what: 'no segment, which is everywhere', labels: undefined, topology: {} },
  ];
  for (const { what, labels, topology } of cases) {
    test(`the object has what the driver says of its node: ${what}`, async () => {
      await using cluster = await Cluster.start();
      cluster.driver.always('NodeGetInfo', {
        node_id: 'id-of-node01',
        ...(labels && { accessible_topology: { segments: labels } }),
      });
      const program = cluster.run(['--node-deployment'], { NODE_NAME: 'node01' });
      const object = await cluster.object();
      assert.deepEqual(object['nodeTopology'], topology);
      assert.equal(object.metadata.labels?.['csi.storage.k8s.io/managed-by'], 'external-provisioner-node01');
      await program.logged('producing CSIStorageCapacity objects with fixed topology segment');
      for (const resource of ['nodes', 'csinodes']) {
        assert.deepEqual(cluster.server.requestLog.entries({ resource, verb: 'list' }), []);
        assert.deepEqual(cluster.server.requestLog.entries({ resource, verb: 'watch' }), []);
      }
    });
  }
});

test('in node deployment a driver that comes back elsewhere gets its object there', async () => {
  await using cluster = await Cluster.start();
  const at = (place: string) => ({ node_id: 'id', accessible_topology: { segments: { [zone]: place } } });
  cluster.driver.always('NodeGetInfo', at('old'));
  const program = cluster.run(['--node-deployment'], { NODE_NAME: 'node01' });
  await cluster.object();
  cluster.driver.kill();
  const { socketPath } = cluster.driver;
  await using again = await RecordingDriver.start({ name: 'drv', socketPath });
  again.always('NodeGetInfo', at('new'));
  again.always('GetCapacity', { available_capacity: 5 });
  await program.logged('The driver came back');
  const seen = (): unknown[] => cluster.stored.map(({ nodeTopology, capacity }) => ({ nodeTopology, capacity }));
  const want = [{ nodeTopology: { matchLabels: { [zone]: 'new' } }, capacity: '5' }];
  await cluster.until('the object of the new place alone', () => isDeepStrictEqual(seen(), want));
});

test('a driver that comes back is asked about everything at once', async () => {
  await using cluster = await Cluster.start();
  const program = cluster.run(['--capacity-poll-interval=1h', '--retry-interval-start=1h']);
  await cluster.object();
  cluster.driver.kill();
  await using again = await RecordingDriver.start({ name: 'drv', socketPath: cluster.driver.socketPath });
  again.always('GetCapacity', { available_capacity: 5 });
  await program.logged('The driver came back');
  await cluster.until('the new amount', () => cluster.stored[0]?.['capacity'] === '5');
});

test('while the driver is away nothing is asked, so that the log stays short', async () => {
  const pollMs = 21; // no other pause of the program is as long
  await using cluster = await Cluster.start();
  let polls = 0;
  const clock: Clock = {
    ...systemClock,
    async sleep(ms, options) {
      await systemClock.sleep(ms, options);
      if (ms === pollMs) polls += 1;
    },
  };
  const flags = [`--capacity-poll-interval=${pollMs}ms`, '--retry-interval-start=1ms', '-v=5'];
  const program = cluster.run(flags, {}, clock);
  await cluster.object();
  cluster.driver.kill();
  await program.logged('Lost connection');
  const failures = (): number => program.lines.filter((line) => line.includes('Error syncing capacity')).length;
  const asked = (): number => program.lines.filter((line) => line.includes('Controller/GetCapacity')).length;
  const [failedBefore, askedBefore] = [failures(), asked()];
  cluster.api.create(resource.classes, { metadata: { name: 'sc2' }, provisioner: 'drv' });
  const pollsBefore = polls;
  await eventually(() => assert.ok(polls >= pollsBefore + 10));
  assert.ok(failures() - failedBefore <= 1, 'at most the call that was under way');
  assert.ok(asked() - askedBefore <= 2, 'its request and its answer');
  await using again = await RecordingDriver.start({ name: 'drv', socketPath: cluster.driver.socketPath });
  again.always('GetCapacity', { available_capacity: 5 });
  await cluster.until('the new amount', () => cluster.stored[0]?.['capacity'] === '5');
});

test('a standby looks for the owner, and asks and writes nothing', async () => {
  await using cluster = await Cluster.start();
  const now = new Date().toISOString().replace('Z', '000Z');
  cluster.api.create(
    { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' },
    {
      metadata: { name: 'drv', namespace: 'ns' },
      spec: { holderIdentity: 'another', leaseDurationSeconds: 3600, acquireTime: now, renewTime: now },
    },
  );
  const standby = cluster.run(['--leader-election', '--leader-election-namespace=ns']);
  await standby.logged('Attempting to acquire leader lease');
  await cluster.until('a look at the lease', () => {
    return cluster.server.requestLog.entries({ resource: 'leases', verb: 'get', status: 200 }).length > 0;
  });
  assert.equal(cluster.server.requestLog.entries({ resource: 'pods', verb: 'get' }).length, 1);
  assert.deepEqual([...cluster.paths()], []);
  assert.equal(cluster.driver.callsOf('GetCapacity').length, 0);
});

describe('metrics', () => {
  const text = async (flags: string[]): Promise<string> => {
    const environment = { NAMESPACE: 'ns', POD_NAME: 'p', NODE_NAME: 'n' };
    const parsed = parseCommandLine({ argv0: 'x', args: flags, environment, version: 'v0.0.0-test' });
    assert.equal(parsed.kind, 'run');
    const registry = createRegistry();
    controllerMetrics(registry, parsed.config, systemClock);
    return await registry.metrics();
  };
  const queue = (name: string): string => `workqueue_depth{name="${name}"} 0`;

  test('of capacity are there from the start, at zero', async () => {
    const page = await text(['--enable-capacity']);
    for (const line of [queue('csistoragecapacity'), queue('csitopology'), 'csistoragecapacities_desired_goal 0'])
      assert.ok(page.includes(line), line);
    assert.match(
      page,
      /# HELP csistoragecapacities_obsolete \[ALPHA\] Number of CSIStorageCapacity objects that exist and will/,
    );
  });

  test('have no queue of topology in node deployment', async () => {
    const page = await text(['--enable-capacity', '--node-deployment']);
    assert.ok(page.includes(queue('csistoragecapacity')));
    assert.ok(!page.includes('csitopology'));
  });

  test('of the intent journal are there unless it is off', async () => {
    assert.match(await text([]), /^intent_journal_protected 1$/m);
    assert.doesNotMatch(await text(['--intent-journal=off']), /intent_journal/);
  });

  test('are missing without capacity', async () => {
    assert.doesNotMatch(await text([]), /csistoragecapacit|csitopology/);
  });
});
