/** A whole provisioner on the library, on the sandbox: its start, its endpoint, its Lease and its end. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { Sandbox } from '../../../sandbox/sandbox.ts';
import {
  type Provisioner,
  runProvisioner,
  type RunProvisionerOptions,
  silentLogger,
  type SignalSource,
} from '../../../src/index.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-ports.ts';

const provisionerName = 'folders.example.com';
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const provisioner: Provisioner = {
  provision: ({ volumeName }) =>
    Promise.resolve({ metadata: { name: volumeName }, spec: { hostPath: { path: `/${volumeName}` } } }),
  delete: () => Promise.resolve(),
};

/** Who holds the Lease of the provisioner. */
function holderIn(sandbox: Sandbox): string | undefined {
  const lease = sandbox.api.client('test').get(leases, { namespace: 'default', name: 'folders-example-com' });
  return (lease as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity;
}

test('rejects a provisioner without a name or a method before anything starts', async () => {
  const unnamed = { provisioner } as RunProvisionerOptions;
  await assert.rejects(runProvisioner(unnamed), /^TypeError: provisionerName must be .*, got undefined$/);
  await assert.rejects(runProvisioner({ provisionerName: '', provisioner }), /^TypeError: provisionerName .*, got ""$/);
  const halfDone = { provision: () => Promise.reject(new Error('not called')) } as unknown as Provisioner;
  const options = { provisionerName, provisioner: halfDone };
  await assert.rejects(runProvisioner(options), /^TypeError: provisioner must have a method delete$/);
});

test('rejects an intent journal in ConfigMaps, or anywhere but in Leases, before anything starts', async () => {
  const run = (intentJournal: string): Promise<number> =>
    runProvisioner({ provisionerName, provisioner, intentJournal } as RunProvisionerOptions);
  await assert.rejects(run('configmap'), /^TypeError: intentJournal must be "lease" or "off", got "configmap"$/);
  await assert.rejects(run('Lease'), /^TypeError: intentJournal must be "lease" or "off", got "Lease"$/);
});

test('leads, serves health and metrics, and gives its Lease up at SIGTERM, with code 0', async () => {
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await Sandbox.start({ nodes: 0 });
  cleanup.defer(() => sandbox.close());
  const signals = new EventEmitter() as EventEmitter & SignalSource;
  const port = await freePort();
  const ended = runProvisioner({
    provisionerName,
    provisioner,
    connection: { kubeconfig: sandbox.kubeconfig },
    leaderElection: { namespace: 'default' },
    http: { address: `127.0.0.1:${port}` },
    signals,
    logger: silentLogger,
  });
  const get = (path: string): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`);
  await eventually(() => assert.ok(holderIn(sandbox)));
  await eventually(async () => assert.equal((await get('/readyz')).status, 200));
  assert.equal((await get('/healthz')).status, 200);
  assert.match(await (await get('/metrics')).text(), /^leader_election_master_status\{name=""\} 1$/m);
  signals.emit('SIGTERM');
  assert.equal(await ended, 0);
  assert.ok(!holderIn(sandbox), 'another leads at once');
});

for (const leaderElection of [false, { namespace: 'default' }]) {
  test(`serves the checks of a program ${leaderElection === false ? 'without' : 'beside'} leader election`, async () => {
    await using cleanup = new AsyncDisposableStack();
    const sandbox = await Sandbox.start({ nodes: 0 });
    cleanup.defer(() => sandbox.close());
    const signals = new EventEmitter() as EventEmitter & SignalSource;
    const port = await freePort();
    const wrong: { live?: string; ready?: string } = {};
    const ended = runProvisioner({
      provisionerName,
      provisioner,
      connection: { kubeconfig: sandbox.kubeconfig },
      leaderElection,
      http: { address: `127.0.0.1:${port}` },
      checks: { live: () => wrong.live, ready: () => wrong.ready },
      signals,
      logger: silentLogger,
    });
    const get = async (path: string): Promise<string> => (await fetch(`http://127.0.0.1:${port}${path}`)).text();
    await eventually(async () => assert.equal(await get('/readyz'), 'ok'));
    wrong.ready = 'the disk does not answer';
    assert.match(await get('/readyz'), /the disk does not answer/);
    assert.equal(await get('/healthz'), 'ok');
    wrong.live = 'the server does not answer';
    assert.match(await get('/healthz'), /the server does not answer/);
    signals.emit('SIGTERM');
    assert.equal(await ended, 0);
  });
}

test('of two on one machine one works, and at its SIGTERM the other takes over', async () => {
  await using cleanup = new AsyncDisposableStack();
  const sandbox = await Sandbox.start({ nodes: 0 });
  cleanup.defer(() => sandbox.close());
  const order: string[] = [];
  const start = (name: string) => {
    const signals = new EventEmitter() as EventEmitter & SignalSource;
    const debug = (_fields: object, message: string): void => {
      if (message === 'New leader detected') order.push(`${name} sees the leader`);
    };
    const ended = runProvisioner({
      provisionerName,
      provisioner,
      connection: { kubeconfig: sandbox.kubeconfig },
      leaderElection: { namespace: 'default' },
      onController: () => order.push(`${name} works`),
      signals,
      logger: { ...silentLogger, debug },
    });
    return {
      async stop(): Promise<void> {
        signals.emit('SIGTERM');
        assert.equal(await ended, 0);
      },
    };
  };
  const until = (step: string): Promise<void> => eventually(() => assert.ok(order.includes(step), order.join(', ')));
  const first = start('first');
  await until('first works');
  const second = start('second');
  await until('second sees the leader');
  const leader = holderIn(sandbox);
  assert.ok(leader);
  assert.deepEqual(
    order.filter((step) => step.endsWith(' works')),
    ['first works'],
  );
  await first.stop();
  await until('second works');
  assert.notEqual(holderIn(sandbox), leader, 'no two share an identity, or both would lead');
  await second.stop();
});

test('without a cluster it says what to do, with code 1', async () => {
  const lines: string[] = [];
  const error = (_fields: object, message: string): void => void lines.push(message);
  const code = await runProvisioner({
    provisionerName,
    provisioner,
    environment: {},
    signals: new EventEmitter() as EventEmitter & SignalSource,
    logger: { ...silentLogger, error },
  });
  assert.equal(code, 1);
  assert.equal(lines.length, 1);
  assert.match(lines[0] ?? '', /KUBERNETES_SERVICE_HOST/);
});
