import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '../../src/base/logger.ts';
import { systemClock } from '../../src/base/clock.ts';
import { Credentials } from '../../src/kube/credentials/credentials.ts';
import { loadKubeConfig } from '../../src/kube/credentials/kube-config.ts';
import { ExponentialLimiter } from '../../src/kube/queue/rate-limiter.ts';
import { Transport } from '../../src/kube/client/transport.ts';
import { ProvisionController } from '../../src/provision/provision-controller.ts';
import { ApiServer } from '../../sandbox/api/api-server.ts';
import type { SandboxClient, SandboxObject } from '../../sandbox/api/client.ts';
import type { FaultRule } from '../../sandbox/api/faults.ts';
import { startControlPlane } from '../../sandbox/control-plane/control-plane.ts';
import { patienceMs } from '../support/patience.ts';
import { CountingClock } from '../integration/provision/counting-clock.ts';
import { FastClock } from '../integration/provision/fast-clock.ts';
import { freePort } from '../support/free-ports.ts';
import { resource } from '../integration/provision/rig.ts';
import { LedgerProvisioner } from '../integration/provision/volume-ledger.ts';

const rounds = 10;
const claimsPerRound = 200;
/** The event recorder remembers the latest 4,096 objects and texts by design, which 2,000 claims do not fill yet. */
const heapMiBPerRound = 1.5;
/** Of about 450 objects of a round, those that idle workers and the last answers still hold. */
const leftInMemory = 30;
/** Time of the controller passes so many times as fast: its pauses between two watches last seconds. */
const factor = 10;
const userAgent = 'soak';

/** Numbers that look random and are the same in every run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What goes wrong in a round; every kind in every round, watches a few times, single requests all the time. */
const faults: FaultRule[] = [
  ...['create', 'delete', 'patch'].flatMap((verb): FaultRule[] => [
    { match: { verb, resource: 'persistentvolumes' }, action: { type: 'status', code: 500 }, probability: 0.05 },
    { match: { verb, resource: 'persistentvolumes' }, action: { type: 'dropBefore' }, probability: 0.03 },
    { match: { verb, resource: 'persistentvolumes' }, action: { type: 'dropAfter' }, probability: 0.03 },
    {
      match: { verb, resource: 'persistentvolumes' },
      action: { type: 'status', code: 429, reason: 'TooManyRequests', retryAfter: 1 },
      probability: 0.03,
    },
    { match: { verb, resource: 'persistentvolumes' }, action: { type: 'truncate', bytes: 40 }, probability: 0.02 },
    { match: { verb, resource: 'persistentvolumes' }, action: { type: 'delay', ms: 30 }, probability: 0.03 },
  ]),
  { match: { watch: true }, action: { type: 'watchCut', afterEvents: 60, how: 'reset' }, times: 2 },
  { match: { watch: true }, action: { type: 'watchError', code: 410, reason: 'Expired' }, after: 2, times: 1 },
  { match: { watch: true }, action: { type: 'watchCut', afterMs: 150, how: 'clean' }, times: 2 },
  { match: { watch: true }, action: { type: 'status', code: 429, retryAfter: 1 }, times: 1 },
  { match: { verb: 'list' }, action: { type: 'throttleBytes', bytesPerSecond: 500_000 }, times: 1 },
  { match: { verb: 'list' }, action: { type: 'status', code: 500 }, times: 1 },
];

test('2,000 claims through a failing API: nothing is lost, repeated or left behind', async () => {
  await using cluster = new AsyncDisposableStack();
  const port = await freePort();
  const server = cluster.adopt(
    new ApiServer({ port, namespaces: ['default', 'ns'], random: seeded(1), historyLimit: 1000, requestLogLimit: 100 }),
    (it) => it.close(),
  );
  const { url } = await server.start();
  const api = server.client('test');
  api.create(resource.classes, { metadata: { name: 'c1' }, provisioner: 'drv' });
  cluster.use(
    startControlPlane({
      client: (user) => server.client(user),
      logger: silentLogger,
      clock: systemClock,
      parts: { scheduler: false, kubeletStub: false, namespaceController: false, gc: false },
    }),
  );
  const pending = new CountingClock();
  const clock = new FastClock({ factor, clock: pending });
  const load = () => loadKubeConfig({ master: url, environment: {} });
  const transport = cluster.use(
    new Transport({
      credentials: new Credentials({ load, clock, logger: silentLogger }),
      userAgent,
      clock,
      logger: silentLogger,
      requestTimeoutMs: 3000 * factor,
    }),
  );
  const ledger = cluster.use(new LedgerProvisioner({ api, random: seeded(2), origin: url }));
  const controller = new ProvisionController({
    provisionerName: 'drv',
    provisioner: ledger,
    transport,
    workers: 10,
    limiter: new ExponentialLimiter({ baseMs: 50, maxMs: 2000 }),
    saveLimiter: new ExponentialLimiter({ baseMs: 5, maxMs: 2000 }),
    failedProvisionThreshold: 0,
    failedDeleteThreshold: 0,
    addFinalizer: true,
    clock,
  });
  const [stop, abort] = [new AbortController(), new AbortController()];
  const running = controller.run({ stop: stop.signal, abort: abort.signal });
  cluster.defer(async () => {
    stop.abort(new Error('the test ends'));
    abort.abort(new Error('the test ends'));
    await running;
  });

  const measured: Measure[] = [];
  for (let round = 1; round <= rounds; round++) {
    const added = faults.map((rule) => server.faults.add({ ...rule, match: { userAgent, ...rule.match } }));
    const names = Array.from({ length: claimsPerRound }, (_, index) => `claim-${round}-${index}`);
    for (const name of names) api.create(resource.claims, claim(name));
    if (round % 3 === 0) await restart(server, url);
    if (round % 3 === 1) server.compact();
    await until(`all claims of round ${round} to be bound`, () => unbound(api, names) === 0);
    for (const { metadata, spec } of claims(api)) {
      const volume = api.get(resource.volumes, { name: spec.volumeName ?? '' });
      assert.equal((volume?.['spec'] as { csi?: { volumeHandle: string } }).csi?.volumeHandle, metadata.uid);
    }
    assert.deepEqual(ledger.violations, []);
    assert.equal(ledger.stored.length, claimsPerRound);
    assert.equal(api.list(resource.volumes).length, claimsPerRound);

    for (const name of names) api.delete(resource.claims, { namespace: 'ns', name });
    if (round % 3 === 2) await restart(server, url);
    await until(`all volumes of round ${round} to go`, () => api.list(resource.volumes).length === 0);
    assert.deepEqual(ledger.violations, []);
    assert.deepEqual(ledger.stored, [], 'no storage is left behind');
    assert.equal(ledger.size, claimsPerRound * round);

    assert.ok(added.filter(({ hits }) => hits > 0).length > faults.length / 2, 'faults did strike');
    server.faults.clear();
    await until('the queues to run empty', () => {
      return controller.queueLengths.claims + controller.queueLengths.volumes === 0;
    });
    for (const { metadata } of api.list(resource.events)) {
      api.delete(resource.events, { namespace: metadata.namespace ?? '', name: metadata.name });
    }
    await until('the cached objects to be let go', () => {
      collectGarbage();
      return ledger.objectsAlive <= leftInMemory;
    });
    measured.push(measure({ pending, stop: stop.signal, abort: abort.signal }));
  }
  assertNoGrowth(measured);

  stop.abort(new Error('the test ends'));
  await running;
  assert.equal(pending.pending, 0);
  assert.equal(getEventListeners(stop.signal, 'abort').length, 0);
  assert.equal(getEventListeners(abort.signal, 'abort').length, 0);
});

interface Measure {
  heapMiB: number;
  timers: number;
  listeners: number;
  resources: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function measure({ pending, stop, abort }: { pending: CountingClock; stop: AbortSignal; abort: AbortSignal }): Measure {
  collectGarbage();
  return {
    heapMiB: process.memoryUsage().heapUsed / 2 ** 20,
    timers: pending.pending,
    listeners: getEventListeners(stop, 'abort').length + getEventListeners(abort, 'abort').length,
    resources: process.getActiveResourcesInfo().length,
  };
}

/** Rounds are compared with the third: by then the code is compiled and the connections are open. */
function assertNoGrowth(measured: Measure[]): void {
  const [first, last] = [measured[2], measured.at(-1)];
  assert.ok(first !== undefined && last !== undefined);
  const text = JSON.stringify(measured);
  const bounds: Omit<Measure, 'resources'> = {
    heapMiB: first.heapMiB + (measured.length - 3) * heapMiBPerRound,
    timers: first.timers + 3,
    listeners: first.listeners + 3, // a sync may be under way
  };
  for (const [name, bound] of Object.entries(bounds) as [keyof typeof bounds, number][]) {
    assert.ok(last[name] <= bound, `${name} grew: ${text}`);
  }
  // Connections are open as the restarts leave them, which repeat every three rounds.
  const resources = measured.map((each) => each.resources);
  assert.ok(Math.min(...resources.slice(-3)) <= Math.max(...resources.slice(0, 3)) + 10, `resources grew: ${text}`);
}

function claim(name: string): SandboxObject {
  return {
    metadata: { name, namespace: 'ns' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: 'c1',
    },
  };
}

interface BoundClaim {
  metadata: { name: string; uid: string };
  spec: { volumeName?: string };
  status?: { phase?: string };
}

function claims(api: SandboxClient): BoundClaim[] {
  return api.list(resource.claims) as unknown as BoundClaim[];
}

function unbound(api: SandboxClient, names: string[]): number {
  const bound = claims(api).filter(({ status }) => status?.phase === 'Bound').length;
  return names.length - bound;
}

async function restart(server: ApiServer, url: string): Promise<void> {
  await delay(100);
  await server.close();
  await delay(100);
  assert.equal((await server.start()).url, url);
}

async function until(what: string, read: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + patienceMs;
  while (!read()) {
    if (performance.now() > deadlineMs) throw new Error(`waited in vain for ${what}`);
    await delay(25);
  }
}
