/** A shutdown while a request gets no response: it ends within its time, and no volume is lost. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { SandboxObject } from '../../../sandbox/api/client.ts';
import type { FaultMatch, FaultRule, InjectedFault } from '../../../sandbox/api/faults.ts';
import { shutdownTimes } from '../../../src/run/shutdown.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { DriverFailure, RecordingDriver } from '../../support/fakes/recording-driver.ts';
import { Program } from '../../support/program.ts';
import { StoredCluster } from '../csi/stored-cluster.ts';

const times = shutdownTimes(10_000);
/** In milliseconds, far below the 30 s after which a request without a response ends by itself. */
const promptMs = 12_000;
const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' };
const volumes = { group: '', version: 'v1', plural: 'persistentvolumes' };

const provisioner = 'd.example.com';
const lock = 'd-example-com';
const journal = `${lock}-journal-0`;
const handle = 'vol-1';

function storageClass(extra: object = {}): SandboxObject {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'sc' },
    provisioner,
    reclaimPolicy: 'Delete',
    volumeBindingMode: 'Immediate',
    ...extra,
  };
}

function claim(annotations: Record<string, string> = {}): SandboxObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'c1',
      namespace: 'ns1',
      uid: '11111111-1111-4111-8111-111111111111',
      annotations: { 'volume.kubernetes.io/storage-provisioner': provisioner, ...annotations },
    },
    spec: { storageClassName: 'sc', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    status: { phase: 'Pending' },
  };
}

function volume(phase: string, finalizers: string[]): SandboxObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'old', finalizers, annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace: 'ns1', name: 'gone', uid: 'gone' },
      csi: { driver: provisioner, volumeHandle: 'old' },
    },
    status: { phase },
  };
}

const ourFinalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
const secretOfClass = {
  parameters: {
    'csi.storage.k8s.io/provisioner-secret-name': 's',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'ns1',
  },
};
const secret: SandboxObject = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's', namespace: 'ns1' },
  data: { k: Buffer.from('v').toString('base64') },
};
const nodeInZone: SandboxObject[] = [
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { zone: 'a' } } },
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: 'n1' },
    spec: { drivers: [{ name: provisioner, nodeID: 'n1', topologyKeys: ['zone'] }] },
  },
];
const lateBinding = storageClass({ volumeBindingMode: 'WaitForFirstConsumer' });
const never = (): Promise<object> => new Promise<object>(() => undefined);

/** The time after which nothing keeps the process running, in milliseconds. */
type Stage = 'stop' | 'abort' | 'quiet' | 'end';

const afterMs: Record<Stage, number> = {
  stop: 0,
  abort: times.abortMs,
  quiet: times.quietMs,
  end: times.endMs,
};

interface Case {
  what: string;
  /** Default: a class and a claim. */
  objects?: readonly SandboxObject[];
  /** The requests that hang, from the start; the test waits for the first one. */
  hangs?: readonly FaultMatch[];
  /** The number of requests of the first kind that get a response before one hangs. */
  after?: number;
  /** Further faults, from the start. */
  faults?: readonly FaultRule[];
  driver?: (driver: RecordingDriver) => void;
  /** The capabilities of the driver. Default: those of the fake. */
  plugin?: string[];
  /** The call of the driver that hangs. */
  call?: string;
  /** The requests that hang once the signal has arrived; the test does not wait for them. */
  hangsAtTheEnd?: readonly FaultMatch[];
  endsAt: Stage;
  code: 0 | 1;
  /** Whether the lease can be released. Default true. */
  releases?: boolean;
  /** What holds after the next start. Default: the claim has its volume. */
  then?: (cluster: StoredCluster) => void;
}

const cases: readonly Case[] = [
  { what: 'the lease when it is taken', hangs: [{ resource: 'leases', verb: 'get' }], endsAt: 'stop', code: 0 },
  {
    what: 'the list of claims',
    hangs: [
      { resource: 'persistentvolumeclaims', watch: true },
      { resource: 'persistentvolumeclaims', verb: 'list' },
    ],
    endsAt: 'stop',
    code: 0,
  },
  {
    what: 'the read of the intent journal at the start',
    hangs: [{ resource: 'leases', verb: 'get', name: journal }],
    endsAt: 'stop',
    code: 0,
  },
  {
    what: 'the creation of the intent journal',
    hangs: [{ resource: 'leases', verb: 'create' }],
    after: 1,
    endsAt: 'stop',
    code: 0,
  },
  {
    what: 'the first write of the intent journal',
    hangs: [{ resource: 'leases', verb: 'update', name: journal }],
    endsAt: 'stop',
    code: 0,
  },
  {
    what: 'the record of a new volume',
    hangs: [{ resource: 'leases', verb: 'update', name: journal }],
    after: 1,
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the access review after a refused record',
    hangs: [{ resource: 'selfsubjectaccessreviews', verb: 'create' }],
    faults: [
      {
        match: { resource: 'leases', verb: 'update', name: journal },
        action: { type: 'status', code: 403, reason: 'Forbidden', message: 'is forbidden: User "u" cannot' },
        after: 1,
      },
    ],
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the read of a class that the cache does not have',
    objects: [claim()],
    hangs: [{ resource: 'storageclasses', verb: 'get' }],
    endsAt: 'abort',
    code: 1,
    then: () => undefined,
  },
  {
    what: 'the read of a Secret',
    objects: [storageClass(secretOfClass), secret, claim()],
    hangs: [{ resource: 'secrets', verb: 'get' }],
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'CreateVolume',
    driver: (driver) => driver.next('CreateVolume', never),
    call: 'CreateVolume',
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the save of a PersistentVolume',
    hangs: [{ resource: 'persistentvolumes', verb: 'create' }],
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the save of a PersistentVolume that is repeated',
    hangs: [{ resource: 'persistentvolumes', verb: 'create' }],
    faults: [
      {
        match: { resource: 'persistentvolumes', verb: 'create' },
        action: { type: 'status', code: 500, reason: 'InternalError' },
        times: 1,
      },
    ],
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the read of a claim before its PersistentVolume is sent again',
    hangs: [{ resource: 'persistentvolumeclaims', verb: 'get' }],
    faults: [
      {
        match: { resource: 'persistentvolumes', verb: 'create' },
        action: { type: 'status', code: 500, reason: 'InternalError' },
      },
    ],
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'the finalizer of a PersistentVolume',
    objects: [volume('Bound', [])],
    hangs: [{ resource: 'persistentvolumes', verb: 'patch' }],
    endsAt: 'abort',
    code: 1,
    then: (cluster) => {
      assert.deepEqual(stored(cluster, 'old')?.metadata.finalizers, [ourFinalizer]);
    },
  },
  {
    what: 'the write of a claim that is to be rescheduled',
    plugin: ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
    objects: [...nodeInZone, lateBinding, claim({ 'volume.kubernetes.io/selected-node': 'n1' })],
    hangs: [{ resource: 'persistentvolumeclaims', verb: 'update' }],
    driver: (driver) => driver.next('CreateVolume', new DriverFailure(status.RESOURCE_EXHAUSTED, 'full')),
    endsAt: 'abort',
    code: 1,
  },
  {
    what: 'DeleteVolume',
    objects: [volume('Released', [ourFinalizer])],
    driver: (driver) => driver.next('DeleteVolume', never),
    call: 'DeleteVolume',
    endsAt: 'abort',
    code: 1,
    then: (cluster) => {
      assert.equal(stored(cluster, 'old'), undefined);
    },
  },
  {
    what: 'the deletion of a PersistentVolume',
    objects: [volume('Released', [ourFinalizer])],
    hangs: [{ resource: 'persistentvolumes', verb: 'delete' }],
    endsAt: 'abort',
    code: 1,
    then: (cluster) => {
      assert.equal(stored(cluster, 'old'), undefined);
    },
  },
  { what: 'an event', hangs: [{ resource: 'events', verb: 'create', namespace: 'ns1' }], endsAt: 'quiet', code: 1 },
  {
    what: 'the read of the lease when it is released',
    objects: [],
    hangsAtTheEnd: [{ resource: 'leases', verb: 'get', name: lock }],
    endsAt: 'end',
    code: 1,
    releases: false,
    then: () => undefined,
  },
  {
    what: 'the write of the lease when it is released',
    objects: [],
    hangsAtTheEnd: [{ resource: 'leases', verb: 'update', name: lock }],
    endsAt: 'end',
    code: 1,
    releases: false,
    then: () => undefined,
  },
  {
    what: 'everything but the driver',
    driver: (driver) =>
      driver.next('CreateVolume', async () => ({
        volume: await delay(500, { volume_id: handle, capacity_bytes: 2 ** 30 }),
      })),
    call: 'CreateVolume',
    hangsAtTheEnd: [{}],
    endsAt: 'end',
    code: 1,
    releases: false,
  },
];

function stored({ server }: StoredCluster, name: string): SandboxObject | undefined {
  return server.client('test').get(volumes, { name });
}

/** The claim has the volume that the driver was asked for, by either process, and no other one was created. */
function hasItsVolume(cluster: StoredCluster, driver: RecordingDriver): void {
  const names = new Set(driver.callsOf('CreateVolume').map(({ request }) => request['name']));
  const name = 'pvc-11111111-1111-4111-8111-111111111111';
  assert.deepEqual([...names], [name]);
  assert.ok(stored(cluster, name) !== undefined, 'the volume is saved');
}

/** What was sent after the lease was released, except for the events about it. */
function sentAfterRelease({ server }: StoredCluster): string[] {
  const released = server.requestLog
    .entries({ resource: 'leases', verb: 'update', path: new RegExp(`/${lock}$`) })
    .at(-1);
  return server.requestLog
    .entries()
    .filter(({ id, resource, user }) => id > (released?.id ?? 0) && resource !== 'events' && user !== 'test')
    .map(({ method, path }) => `${method} ${path}`);
}

function isReleased({ server }: StoredCluster): boolean {
  const lease = server.client('test').get(leases, { namespace: 'default', name: lock });
  return lease !== undefined && ((lease['spec'] as { holderIdentity?: string }).holderIdentity ?? '') === '';
}

describe('on a signal while something hangs', () => {
  for (const each of cases) {
    const { what, objects = [storageClass(), claim()], hangs = [], faults = [], endsAt, code, releases = true } = each;
    test(`${what}: the process ends in time`, async () => {
      await using driver = await RecordingDriver.start({ ...(each.plugin && { plugin: each.plugin }) });
      await using cluster = await StoredCluster.start(objects);
      const { server } = cluster;
      each.driver?.(driver);
      for (const fault of faults) server.faults.add(fault);
      const hanging = (match: FaultMatch, after = 0): InjectedFault =>
        server.faults.add({ match, action: { type: 'delay', ms: 3_600_000 }, after });
      const held = hangs.map((match) => hanging(match, each.after));
      const clock = new ManualClock();
      const options = {
        socketPath: driver.socketPath,
        apiUrl: cluster.url,
        flags: ['--leader-election', '--retry-interval-start=50ms'],
      };
      await using program = new Program({ ...options, shutdownClock: clock });
      if (held.length > 0)
        await eventually(() =>
          assert.ok(
            held.some(({ hits }) => hits > 0),
            program.lines.join(''),
          ),
        );
      if (each.call !== undefined) await driver.called(each.call);
      if (held.length === 0 && each.call === undefined) await program.logged('Started provisioner controller');
      const atTheEnd = (each.hangsAtTheEnd ?? []).map((match) => hanging(match));
      program.signal('SIGTERM');
      if (atTheEnd.length > 0) await eventually(() => assert.ok(atTheEnd.some(({ hits }) => hits > 0)));
      await clock.advance(afterMs[endsAt]);
      const ended = await Promise.race([program.ended, delay(promptMs, 'too late', { ref: false })]);
      assert.deepEqual(ended, { code }, program.lines.join(''));
      if (endsAt !== 'stop' && releases) {
        assert.ok(isReleased(cluster), 'the lease is released');
        assert.deepEqual(sentAfterRelease(cluster), []);
      }
      server.faults.clear();
      await using next = new Program(options);
      await eventually(() => {
        try {
          if (each.then === undefined) hasItsVolume(cluster, driver);
          else each.then(cluster);
        } catch (error) {
          throw new Error(next.lines.join(''), { cause: error });
        }
      });
    });
  }
});
