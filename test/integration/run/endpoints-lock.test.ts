/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** Elections of programs that have to get on with those from before there were Leases. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { after, afterEach, before, describe, test } from 'node:test';
import { compatibleElection, type Provisioner, runProvisioner, type SignalSource } from '../../../src/index.ts';
import { type Admin, connectAdmin, ifFound } from '../../support/admin.ts';
import type { Cluster } from '../../support/cluster.ts';
import { eventually } from '../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { startSandbox } from '../../support/sandbox-cluster.ts';

const recordKey = 'control-plane.alpha.kubernetes.io/leader';
const namespace = 'default';
const name = 'example.com-folders';
const provisioner: Provisioner = {
  provision: ({ volumeName }) =>
    Promise.resolve({ metadata: { name: volumeName }, spec: { hostPath: { path: `/${volumeName}` } } }),
  delete: () => Promise.resolve(),
};

/** An account that may hold locks of these kinds, and read what every provisioner reads. */
function manifests(account: string, locks: readonly ('endpoints' | 'leases')[]): string {
  const binding = (kind: 'Role' | 'ClusterRole', metadata: string) => `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ${kind}Binding
metadata: ${metadata}
subjects: [{ kind: ServiceAccount, name: ${account}, namespace: ${namespace} }]
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ${kind}, name: ${account} }
`;
  const rule = { endpoints: `''`, leases: 'coordination.k8s.io' };
  return `
apiVersion: v1
kind: ServiceAccount
metadata: { name: ${account}, namespace: ${namespace} }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: ${account} }
rules:
  - { apiGroups: [''], resources: [persistentvolumes, persistentvolumeclaims], verbs: [get, list, watch, create, delete] }
  - { apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get, list, watch] }
  - { apiGroups: [''], resources: [events], verbs: [create, update, patch] }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: ${account}, namespace: ${namespace} }
rules: [${locks.map((lock) => `{ apiGroups: [${rule[lock]}], resources: [${lock}], verbs: [get, list, watch, create, update, patch] }`).join(', ')}]
${binding('ClusterRole', `{ name: ${account} }`)}${binding('Role', `{ name: ${account}, namespace: ${namespace} }`)}`;
}

describe('an election that may use the Endpoints lock', () => {
  let cluster: Cluster;
  let admin: Admin;
  let log: LogLine[] = [];
  const running: { stop: () => Promise<number> }[] = [];

  before(async () => {
    cluster = await startSandbox();
    admin = connectAdmin(cluster.adminKubeconfig);
  });
  afterEach(async () => {
    for (const each of running.splice(0)) await each.stop();
    await ifFound(admin.core.deleteNamespacedEndpoints({ name, namespace }));
    await ifFound(admin.coordination.deleteNamespacedLease({ name, namespace }));
    log = [];
  });
  after(() => cluster.stop());

  const start = async (account: string, locks: readonly ('endpoints' | 'leases')[]) => {
    const kubeconfig = await cluster.accountKubeconfig(manifests(account, locks), { namespace, name: account });
    const signals = new EventEmitter() as EventEmitter & SignalSource;
    let works = false;
    const ended = runProvisioner({
      provisionerName: 'example.com/folders',
      provisioner,
      connection: { kubeconfig },
      leaderElection: compatibleElection('example.com/folders', namespace),
      onController: () => (works = true),
      signals,
      logger: recordedLogger(log),
    });
    const started = {
      working: () => works,
      stop: () => {
        signals.emit('SIGTERM');
        return ended;
      },
    };
    running.push(started);
    return started;
  };
  const leads = (started: { working: () => boolean }): Promise<void> => eventually(() => assert.ok(started.working()));
  const endpointsRecord = async () => {
    const endpoints = await ifFound(admin.core.readNamespacedEndpoints({ name, namespace }));
    const text = endpoints?.metadata?.annotations?.[recordKey];
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>);
  };
  const lease = async () => (await ifFound(admin.coordination.readNamespacedLease({ name, namespace })))?.spec;
  const warnings = () => log.filter(({ level }) => level === 'warn' || level === 'error');

  test('holds the Endpoints alone where Leases are not permitted, as client-go did, and says so once', async () => {
    const started = await start('endpoints-only', ['endpoints']);
    await leads(started);
    const record = await endpointsRecord();
    assert.deepEqual(Object.keys(record ?? {}).sort(), [
      'acquireTime',
      'holderIdentity',
      'leaderTransitions',
      'leaseDurationSeconds',
      'renewTime',
    ]);
    assert.equal(record?.['leaseDurationSeconds'], 15);
    assert.match(String(record['renewTime']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    assert.equal(await lease(), undefined);
    assert.deepEqual(
      warnings().map(({ message }) => message),
      ['Not permitted to use Leases: leader election is on the Endpoints object, as before there were Leases'],
    );
    assert.equal(await started.stop(), 0);
    assert.equal((await endpointsRecord())?.['holderIdentity'], '', 'another leads at once');
  });

  test('holds both where both are permitted, and the Lease alone where the Endpoints are not', async () => {
    const both = await start('both-locks', ['endpoints', 'leases']);
    await leads(both);
    const holder = (await endpointsRecord())?.['holderIdentity'];
    assert.ok(holder);
    assert.equal((await lease())?.holderIdentity, holder);
    const leaseOnly = await start('lease-only', ['leases']);
    await eventually(() => {
      assert.ok(log.filter(({ message }) => message.startsWith('Attempting to acquire')).length > 2);
    });
    assert.equal(leaseOnly.working(), false);
    assert.equal(await both.stop(), 0);
    await leads(leaseOnly);
    assert.equal((await endpointsRecord())?.['holderIdentity'], '');
    assert.deepEqual(warnings(), []);
  });

  test('waits for a program that knows the Endpoints alone, and keeps what else is in them', async () => {
    const record = (holderIdentity: string): Record<string, string> => {
      const now = new Date().toISOString().replace(/\.\d+Z/, 'Z');
      const times = { acquireTime: now, renewTime: now };
      return {
        [recordKey]: JSON.stringify({ holderIdentity, leaseDurationSeconds: 2, ...times, leaderTransitions: 4 }),
      };
    };
    const subsets = [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] }];
    const body = { metadata: { name, namespace, annotations: { ...record('old'), other: 'kept' } }, subsets };
    await admin.core.createNamespacedEndpoints({ namespace, body });
    const started = await start('both-locks', ['endpoints', 'leases']);
    for (let renewal = 0; renewal < 4; renewal++) {
      await new Promise((resolve) => setTimeout(resolve, 500)); // the pace of the other program
      assert.equal(started.working(), false);
      assert.equal(await lease(), undefined, 'the Endpoints come first');
      const found = await admin.core.readNamespacedEndpoints({ name, namespace });
      Object.assign(found.metadata?.annotations ?? {}, record('old'));
      await admin.core.replaceNamespacedEndpoints({ name, namespace, body: found });
    }
    await leads(started);
    const after_ = await admin.core.readNamespacedEndpoints({ name, namespace });
    assert.equal(after_.metadata?.annotations?.['other'], 'kept');
    assert.equal(after_.subsets?.[0]?.addresses?.[0]?.ip, '10.0.0.1');
    assert.equal((await endpointsRecord())?.['leaderTransitions'], 5);
  });
});
