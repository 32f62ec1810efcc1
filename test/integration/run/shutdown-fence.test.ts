/** What is sent around the end of a shutdown, by provisioners that ignore their signal. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import {
  type Clock,
  type Provisioner,
  runProvisioner,
  type RunProvisionerOptions,
  type SignalSource,
} from '../../../src/index.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { type LogLine, recordedLogger } from '../../support/fakes/recorded-logger.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';

const provisionerName = 'folders.example.com';
const lock = 'folders-example-com';
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };

const objects: SandboxObject[] = [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'sc' },
    provisioner: provisionerName,
    volumeBindingMode: 'Immediate',
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'c1',
      namespace: 'ns1',
      annotations: { 'volume.kubernetes.io/storage-provisioner': provisionerName },
    },
    spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Pending' },
  },
];

/** All timers of 20 s and more fire 20 s earlier: a shutdown takes 5 s, and its last stages take as long as usual. */
const hurriedClock: Clock = {
  ...systemClock,
  after: (ms, run) => systemClock.after(ms >= 20_000 ? ms - 20_000 : ms, run),
};

const provisioner: Provisioner = {
  provision: ({ volumeName }) =>
    Promise.resolve({ metadata: { name: volumeName }, spec: { hostPath: { path: `/${volumeName}` } } }),
  delete: () => Promise.resolve(),
};

class Run implements AsyncDisposable {
  readonly cluster: StoredCluster;
  readonly lines: LogLine[] = [];
  readonly ended: Promise<number>;
  readonly #signals = new EventEmitter() as EventEmitter & SignalSource;

  constructor(cluster: StoredCluster, source: RunProvisionerOptions['provisioner']) {
    this.cluster = cluster;
    this.ended = runProvisioner({
      provisionerName,
      provisioner: source,
      connection: { master: cluster.url },
      environment: {},
      leaderElection: { namespace: 'default' },
      clock: hurriedClock,
      signals: this.#signals,
      logger: recordedLogger(this.lines),
    });
    this.ended.catch(() => undefined); // handled by the code that awaits it
  }

  signal(): void {
    this.#signals.emit('SIGTERM');
  }

  get lease(): { holderIdentity?: string; renewTime?: string } {
    const lease = this.cluster.server.client('test').get(leases, { namespace: 'default', name: lock });
    return lease?.['spec'] ?? {};
  }

  logged(text: RegExp): boolean {
    return this.lines.some(({ message }) => text.test(message));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.cluster[Symbol.asyncDispose]();
  }
}

describe('at the end of a shutdown', () => {
  test('nothing of a provisioner is sent once the Lease is released, also if it never ends', async () => {
    let sent = 0;
    await using run = new Run(await StoredCluster.start(objects), ({ client }) => {
      const sendOn = async (): Promise<void> => {
        for (;;) {
          await client.raw('/version');
          sent++;
        }
      };
      for (let number = 0; number < 4; number++) sendOn().catch(() => undefined);
      return provisioner;
    });
    await eventually(() => assert.ok(sent > 10 && run.logged(/Started provisioner controller/)));
    run.signal();
    assert.equal(await run.ended, 0);
    assert.equal(run.lease.holderIdentity, '');
    const { requestLog } = run.cluster.server;
    const released = requestLog.entries({ resource: 'leases', verb: 'update', path: new RegExp(`/${lock}$`) }).at(-1);
    const last = requestLog.entries({ path: '/version' }).at(-1);
    assert.ok(
      released !== undefined && last !== undefined && last.id < released.id,
      JSON.stringify({ released, last }),
    );
  });

  test('a request that ignores its signal is aborted in time to release the Lease', async () => {
    const cluster = await StoredCluster.start(objects);
    const action = { type: 'delay', ms: 3_600_000 } as const;
    const fault = cluster.server.faults.add({ match: { resource: 'persistentvolumeclaims', verb: 'get' }, action });
    await using run = new Run(cluster, ({ client }) => ({
      ...provisioner,
      shouldProvision: async () => {
        const claims = { group: '', version: 'v1', plural: 'persistentvolumeclaims', kind: '', namespaced: true };
        await client.get(claims, { namespace: 'ns1', name: 'c1' });
        return true;
      },
    }));
    await eventually(() => assert.equal(fault.hits, 1));
    run.signal();
    assert.equal(await run.ended, 1);
    assert.equal(run.lease.holderIdentity, '');
  });

  test('work that ended in time is no failure, even if the release of the Lease takes too long', async () => {
    const cluster = await StoredCluster.start(objects);
    const begun = Promise.withResolvers<undefined>();
    const work = Promise.withResolvers<undefined>();
    await using run = new Run(cluster, {
      ...provisioner,
      provision: async (...call) => {
        begun.resolve(undefined);
        await work.promise;
        return provisioner.provision(...call);
      },
    });
    await begun.promise;
    const slow = cluster.server.faults.add({
      match: { resource: 'leases', verb: 'get' },
      action: { type: 'delay', ms: 1500 },
    });
    run.signal();
    work.resolve(undefined);
    assert.equal(await run.ended, 0);
    assert.ok(slow.hits > 0 && run.lease.holderIdentity === '', `the lease was released after ${slow.hits} slow reads`);
  });

  test('work that ignores its signal keeps the Lease for as long as it takes', async () => {
    const begun = Promise.withResolvers<undefined>();
    const work = Promise.withResolvers<never>();
    await using run = new Run(await StoredCluster.start(objects), {
      ...provisioner,
      provision: () => {
        begun.resolve(undefined);
        return work.promise;
      },
    });
    await begun.promise;
    run.signal();
    await eventually(() => assert.ok(run.logged(/Work under way has not ended, although it was aborted/)));
    const { renewTime } = run.lease;
    await eventually(() => assert.notEqual(run.lease.renewTime, renewTime));
    assert.notEqual(run.lease.holderIdentity, '');
    work.reject(new Error('given up at last'));
    assert.equal(await run.ended, 1);
    assert.notEqual(run.lease.holderIdentity, '', 'nothing more is sent, the lease expires');
  });
});
