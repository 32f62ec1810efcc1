/** What `preflight` finds, and what it leaves alone, in manifests that differ in one thing from a driver without any finding. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  access,
  clusterRules,
  type DriverOptions,
  type Json,
  leaseRules,
  named,
  rule,
  sidecarOf,
  workload,
  reportOf,
} from './driver-manifests.ts';

test('a driver with all rights and flags that mean the same has no finding', async () => {
  assert.deepEqual((await sidecarOf({})).findings, []);
});

const without = (plural: string): Json[] =>
  clusterRules.filter(({ resources }) => (resources as string[])[0] !== plural);
const socket = '--csi-address=/csi/csi.sock';
const elected = [socket, '--leader-election'];
const other = { name: 'driver', image: 'example.com/driver:v1' };
const withoutElection = { args: [socket], spec: { strategy: { type: 'Recreate' } } };

interface Case {
  name: string;
  driver: DriverOptions;
  want: string[];
  /** In a message or cure. */
  says?: RegExp;
}

const cases: readonly Case[] = [
  {
    name: 'a command of the Go image',
    driver: { container: { command: ['/csi-provisioner'] } },
    want: ['must command'],
    says: /runs "\/csi-provisioner"/,
  },
  {
    name: 'a command that is the entry point of this image',
    driver: { container: { command: ['/nodejs/bin/node', '/csi-provisioner.mjs'] } },
    want: [],
  },
  {
    name: 'a shell',
    driver: { container: { command: ['/bin/sh', '-c', 'exec /csi-provisioner --bogus'] } },
    want: ['must command', 'warning two-at-once'],
    says: /no shell/,
  },
  {
    name: 'a flag in the command',
    driver: { args: [], container: { command: ['/csi-provisioner', ...elected, '--bogus'] } },
    want: ['must command', 'must arguments'],
    says: /move its arguments to args/,
  },
  {
    name: 'a flag that there is not',
    driver: { args: [...elected, '--enable-leader-election'] },
    want: ['must arguments'],
    says: /unknown flag: --enable-leader-election \(did you mean --leader-election\?\)/,
  },
  {
    name: 'a flag of another name whose value stands apart',
    driver: { args: [...elected, '--provisioner', 'x', '--timeout=bad'] },
    want: ['must arguments', 'must arguments'],
    says: /invalid argument "bad" for "--timeout"/,
  },
  {
    name: 'a gate that was removed',
    driver: { args: [...elected, '--feature-gates=HonorPVReclaimPolicy=true,Topology=true'] },
    want: ['must arguments'],
    says: /Remove the gate/,
  },
  {
    name: 'an address that is no socket',
    driver: { args: ['--csi-address=csi.sock', '--leader-election'] },
    want: ['must arguments'],
    says: /must be an absolute path/,
  },
  {
    name: 'timings that cannot work',
    driver: { args: [...elected, '--leader-election-lease-duration=5s'] },
    want: ['must arguments'],
    says: /leaseDuration must be greater/,
  },
  {
    name: 'node deployment without its variable',
    driver: { kind: 'DaemonSet', args: [socket, '--node-deployment'] },
    want: ['must arguments'],
    says: /spec\.nodeName for NODE_NAME/,
  },
  {
    name: 'node deployment with a variable that may come from a ConfigMap',
    driver: {
      kind: 'DaemonSet',
      args: [socket, '--node-deployment'],
      container: { envFrom: [{ configMapRef: { name: 'x' } }] },
    },
    want: ['warning arguments'],
    says: /Unless envFrom sets/,
  },
  {
    name: 'an address in a variable',
    driver: {
      args: ['--csi-address=$(ADDRESS)', '--leader-election'],
      container: { env: [{ name: 'ADDRESS', value: '/csi/csi.sock' }] },
    },
    want: [],
  },
  {
    name: 'a hook that runs a program',
    driver: { container: { lifecycle: { preStop: { exec: { command: ['sleep', '5'] } } } } },
    want: ['must exec'],
    says: /preStop runs a program/,
  },
  {
    name: 'a hook that sleeps',
    driver: { container: { lifecycle: { preStop: { sleep: { seconds: 5 } } } } },
    want: [],
  },
  { name: 'no root, and no user', driver: { pod: { securityContext: { runAsNonRoot: true } } }, want: ['must user'] },
  {
    name: 'no root, and a user',
    driver: { pod: { securityContext: { runAsNonRoot: true, runAsUser: 65532 } } },
    want: [],
  },
  {
    name: 'no root for the Pod, but for the container',
    driver: {
      pod: { securityContext: { runAsNonRoot: true } },
      container: { securityContext: { runAsNonRoot: false } },
    },
    want: [],
  },
  {
    name: 'nodes of an architecture that is not built',
    driver: { pod: { nodeSelector: { 'kubernetes.io/arch': 's390x', 'kubernetes.io/os': 'linux' } } },
    want: ['must architecture'],
  },
  {
    name: 'less memory than Node.js takes',
    driver: { container: { resources: { limits: { memory: '64Mi' } } } },
    want: ['must memory'],
  },
  {
    name: 'memory for few volumes',
    driver: { container: { resources: { limits: { memory: '100Mi' } } } },
    want: ['warning memory'],
    says: /about 1,000 volumes/,
  },
  {
    name: 'memory for most clusters',
    driver: { container: { resources: { limits: { memory: '400Mi' } } } },
    want: ['note memory'],
    says: /about 220,000 volumes/,
  },
  { name: 'much memory', driver: { container: { resources: { limits: { memory: '512Mi', cpu: 1 } } } }, want: [] },
  {
    name: 'hardly any CPU',
    driver: { container: { resources: { limits: { cpu: '20m' } } } },
    want: ['warning cpu'],
    says: /a start takes about 210 s/,
  },
  {
    name: 'replicas of which none leads',
    driver: { ...withoutElection, spec: { ...withoutElection.spec, replicas: 2 } },
    want: ['warning two-at-once'],
    says: /2 replicas/,
  },
  {
    name: 'a rolling update without election',
    driver: { args: [socket] },
    want: ['warning two-at-once'],
    says: /Recreate/,
  },
  {
    name: 'a rolling update without election and without surge',
    driver: { args: [socket], spec: { strategy: { rollingUpdate: { maxSurge: 0 } } } },
    want: [],
  },
  {
    name: 'two replicas in the network of their node',
    driver: { pod: { hostNetwork: true }, spec: { replicas: 2 } },
    want: ['warning shared-host-name'],
    says: /2 replicas with leader election, with hostNetwork/,
  },
  {
    name: 'two replicas in the network of their node, on different ones',
    driver: {
      pod: {
        hostNetwork: true,
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }],
          },
        },
      },
      spec: { replicas: 2 },
    },
    want: [],
  },
  {
    name: 'one replica in the network of its node, which a rolling update doubles for a moment',
    driver: { pod: { hostNetwork: true } },
    want: ['note shared-host-name'],
    says: /takes over the Lease of the one that still works/,
  },
  {
    name: 'one replica in the network of its node that ends before the next one starts',
    driver: { pod: { hostNetwork: true }, spec: { strategy: { type: 'Recreate' } } },
    want: [],
  },
  {
    name: 'two replicas with one host name',
    driver: { pod: { hostname: 'driver' }, spec: { replicas: 2 } },
    want: ['warning shared-host-name'],
    says: /with one hostname for all/,
  },
  {
    name: 'two Pods of a StatefulSet, which sets their host names',
    driver: { kind: 'StatefulSet', pod: { hostname: 'driver' }, spec: { replicas: 2 } },
    want: [],
  },
  { name: 'a StatefulSet without election', driver: { kind: 'StatefulSet', args: [socket] }, want: [] },
  {
    name: 'a DaemonSet that does not know it',
    driver: { kind: 'DaemonSet', args: [socket] },
    want: ['warning every-node'],
  },
  {
    name: 'a second Go sidecar of another driver',
    driver: {
      beside: [
        { name: 'second', image: 'x/csi-provisioner:v6.3.0', args: ['--csi-address=/other.sock', '--leader-election'] },
      ],
    },
    want: ['note several-provisioners', 'note shared-token'],
  },
  {
    name: 'a second Go sidecar of the same driver',
    driver: { beside: [{ name: 'second', image: 'x/csi-provisioner:v6.3.0', args: elected }] },
    want: ['warning several-provisioners', 'note several-provisioners', 'note shared-token'],
  },
  {
    name: 'a probe of the election, which is on',
    driver: {
      args: [...elected, '--http-endpoint=:8080'],
      container: { livenessProbe: { httpGet: { path: '/healthz/leader-election', port: 8080 } } },
    },
    want: [],
  },
  {
    name: 'a probe of the election, which is off',
    driver: {
      ...withoutElection,
      args: [socket, '--http-endpoint=:8080'],
      container: {
        ports: [{ name: 'http', containerPort: 8080 }],
        livenessProbe: { httpGet: { path: '/healthz/leader-election', port: 'http' } },
      },
    },
    want: ['must probe'],
  },
  {
    name: 'a probe of another container',
    driver: {
      args: [...elected, '--http-endpoint=:8080'],
      container: { livenessProbe: { httpGet: { path: '/driver', port: 9808 } } },
    },
    want: [],
  },
  {
    name: 'a release in which topology was off',
    driver: { image: 'quay.io/k8scsi/csi-provisioner:v3.6.1' },
    want: ['warning release', 'note release', 'note release'],
    says: /Topology is off by default in the Go sidecar v3\.6/,
  },
  {
    name: 'such a release with all of it set',
    driver: {
      image: 'x/csi-provisioner:v3.6.1',
      args: [
        ...elected,
        '--feature-gates=Topology=false,VolumeAttributesClass=false',
        '--prevent-volume-mode-conversion',
      ],
    },
    want: [],
  },
  { name: 'a release to come', driver: { image: 'x/csi-provisioner:v7.0.0' }, want: ['note release'] },
  {
    name: 'a release of a distribution',
    driver: { image: 'registry.redhat.io/openshift4/ose-csi-external-provisioner-rhel9:v4.16' },
    want: [],
  },
  {
    name: 'a time-out of twenty minutes',
    driver: { args: [...elected, '--timeout=1200s'] },
    want: ['warning grace-period', 'note timeout'],
    says: /a shutdown takes up to 20m5s; .* is deleted 1m0s later; a volume that no claim wants is deleted 30m0s after the last call/,
  },
  {
    name: 'such a time-out with its grace period',
    driver: { args: [...elected, '--timeout=1200s'], pod: { terminationGracePeriodSeconds: 1210 } },
    want: ['note timeout'],
  },
  {
    name: 'a time-out in which nothing can be done',
    driver: { args: [...elected, '--timeout=0'] },
    want: ['warning flags'],
    says: /the timeout is not positive/,
  },
  {
    name: 'the end of the Go sidecar at a signal',
    driver: { args: [...elected, '--timeout=60s', '--feature-gates=ReleaseLeaderElectionOnExit=false'] },
    want: ['note timeout', 'note flags'],
  },
  {
    name: 'a value behind a blank',
    driver: { args: [...elected, '--extra-create-metadata', 'true'] },
    want: ['warning flags'],
    says: /One argument is not a flag/,
  },
  {
    name: 'flags without effect, a deprecated one and a limit',
    driver: { args: [...elected, '--vmodule=x=1', '--metrics-address=:8080', '--kube-api-qps=30'] },
    want: ['note flags', 'note flags', 'note flags'],
    says: /Accepted, but without effect here: --vmodule/,
  },
  {
    name: 'a profile of system calls of the node',
    driver: { container: { securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'go.json' } } } },
    want: ['warning seccomp'],
  },
  {
    name: 'a driver with the same token',
    driver: { beside: [other] },
    want: ['note shared-token'],
    says: /driver has the token .* may delete PersistentVolumes, write the records of the intent journal, read all Secrets/,
  },
  {
    name: 'a driver in a Pod without token',
    driver: { beside: [other], pod: { automountServiceAccountToken: false } },
    want: [],
  },
  {
    name: 'another account of a kubeconfig',
    driver: { args: [...elected, '--kubeconfig=/etc/kubeconfig'] },
    want: ['warning rights-unknown'],
    says: /kubeconfig or --master/,
  },
];

describe('a manifest with', () => {
  for (const { name, driver, want, says } of cases) {
    test(name, async () => {
      const report = await sidecarOf(driver);
      assert.deepEqual(named(report), want);
      if (says !== undefined) {
        const text = report.findings.map(({ message, cure }) => `${message} ${cure}`).join('\n');
        assert.match(text, says);
      }
    });
  }
});

describe('a ServiceAccount that lacks', () => {
  for (const { name, cluster = clusterRules, namespaced = leaseRules, driver = {}, want, says } of [
    {
      name: 'patch on volumes',
      cluster: [...without('persistentvolumes'), rule('', 'persistentvolumes', 'get list watch create delete')],
      want: ['must missing-right'],
      says: /patch on persistentvolumes is missing .* needs it since v5\.0/,
    },
    {
      name: 'get on claims, which the Go sidecar does not need',
      cluster: [...without('persistentvolumeclaims'), rule('', 'persistentvolumeclaims', 'list watch update')],
      want: ['must missing-right'],
      says: /does not need it/,
    },
    {
      name: 'leases, without election',
      namespaced: [],
      driver: withoutElection,
      want: ['warning no-journal'],
      says: /get, create and update on leases\.coordination\.k8s\.io in namespace storage are missing/,
    },
    {
      name: 'leases, with election',
      namespaced: [],
      want: ['must missing-right', 'warning no-journal', 'note missing-right'],
    },
    {
      name: 'leases, with neither election nor journal',
      namespaced: [],
      driver: { ...withoutElection, args: [socket, '--intent-journal=off'] },
      want: [],
    },
    {
      name: 'leases of other names than that of the election',
      namespaced: [
        rule('coordination.k8s.io', 'leases', 'get update list watch', { resourceNames: ['driver'] }),
        rule('coordination.k8s.io', 'leases', 'create'),
      ],
      want: ['warning no-journal'],
      says: /granted for certain names alone/,
    },
    {
      name: 'leases in the namespace of the flag',
      driver: { args: [...elected, '--leader-election-namespace=kube-system'] },
      want: ['must missing-right', 'warning no-journal', 'note missing-right'],
      says: /in namespace kube-system/,
    },
    {
      name: 'nodes, for a driver of which nothing shows topology',
      cluster: without('nodes'),
      want: ['note conditional-rights'],
      says: /list and watch on nodes, if the driver reports VOLUME_ACCESSIBILITY_CONSTRAINTS/,
    },
    {
      name: 'nodes, with topology on by a flag',
      cluster: without('nodes'),
      driver: { args: [...elected, '--strict-topology'] },
      want: ['must missing-right'],
      says: /on, since --strict-topology/,
    },
    {
      name: 'nodes, with topology off',
      cluster: without('nodes'),
      driver: { args: [...elected, '--feature-gates=Topology=false'] },
      want: [],
    },
    {
      name: 'nodes and claims of other nodes, in node deployment',
      cluster: without('nodes'),
      driver: {
        kind: 'DaemonSet',
        args: [socket, '--node-deployment'],
        container: { env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }] },
      },
      want: ['note missing-right'],
      says: /the records of a node that is gone are not reported/,
    },
    {
      name: 'the objects of storage capacity',
      driver: {
        args: [...elected, '--enable-capacity'],
        container: {
          env: [
            { name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          ],
        },
      },
      want: ['must missing-right', 'must missing-right'],
      says: /get on pods in namespace storage is missing/,
    },
    {
      name: 'attachments, beside an attacher',
      cluster: without('volumeattachments'),
      driver: {
        beside: [{ name: 'a', image: 'registry.k8s.io/sig-storage/csi-attacher:v4' }],
        pod: { automountServiceAccountToken: false },
      },
      want: ['must missing-right'],
      says: /the external-attacher runs beside it/,
    },
    {
      name: 'snapshots, beside a snapshotter',
      cluster: without('volumesnapshots'),
      driver: {
        beside: [{ name: 's', image: 'registry.k8s.io/sig-storage/csi-snapshotter:v8' }],
        pod: { automountServiceAccountToken: false },
      },
      want: ['warning missing-right', 'note missing-right'],
    },
    {
      name: 'attributes classes, with their gate off',
      cluster: without('volumeattributesclasses'),
      driver: { args: [...elected, '--feature-gates=VolumeAttributesClass=false'] },
      want: [],
    },
    {
      name: 'grants, with their gate on',
      driver: { args: [...elected, '--feature-gates=CrossNamespaceVolumeDataSource=true'] },
      want: ['must missing-right'],
      says: /referencegrants\.gateway\.networking\.k8s\.io/,
    },
  ] as {
    name: string;
    cluster?: Json[];
    namespaced?: Json[];
    driver?: DriverOptions;
    want: string[];
    says?: RegExp;
  }[]) {
    test(name, async () => {
      const report = await sidecarOf(driver, access(cluster, namespaced));
      assert.deepEqual(named(report), want);
      const text = report.findings.map(({ message }) => message).join('\n');
      if (says !== undefined) assert.match(text, says);
    });
  }
});

describe('objects of the driver', () => {
  test('that attach nothing make volumeattachments needless', async () => {
    const csiDriver = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'd' },
      spec: { attachRequired: false },
    };
    assert.deepEqual(named(await sidecarOf({}, [...access(without('volumeattachments')), csiDriver])), []);
  });

  test('that name a Secret make its permission needed', async () => {
    const storageClass = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast' },
      provisioner: 'd',
      parameters: { 'csi.storage.k8s.io/provisioner-secret-name': 'login' },
    };
    const { findings } = await sidecarOf({}, [...access(without('secrets')), storageClass]);
    assert.deepEqual(
      findings.map(({ level, finding }) => `${level} ${finding}`),
      ['warning missing-right'],
    );
    assert.match(findings[0]?.message ?? '', /on, since the class fast names one/);
  });

  test('that are not given leave the rights unknown', async () => {
    const report = await sidecarOf({}, []);
    assert.deepEqual(named(report), ['warning rights-unknown']);
    assert.ok(report.rights.every(({ verbs }) => Object.values(verbs).every((answer) => answer === 'unknown')));
    assert.equal(report.grant, '');
  });

  test('in roles that are not given leave unknown what features need that are on, and no others', async () => {
    const { findings } = await sidecarOf(
      {},
      access().filter(({ kind }) => kind !== 'ClusterRole'),
    );
    assert.deepEqual(
      findings.map(({ level, finding }) => `${level} ${finding}`),
      ['warning rights-unknown'],
    );
    const message = findings[0]?.message ?? '';
    assert.match(message, /is bound to roles that are not in the manifests: driver\. /);
    assert.match(message, /needed for provisioning, events is not known/);
  });

  test('of another account that may write Leases are named', async () => {
    const snapshots = [
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'other' },
        rules: leaseRules,
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'other' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'other' },
        subjects: [{ kind: 'ServiceAccount', name: 'snapshot-controller', namespace: 'kube-system' }],
      },
    ];
    const { findings } = await sidecarOf({}, [...access(), ...snapshots]);
    assert.match(findings[0]?.message ?? '', /kube-system\/snapshot-controller/);
    assert.equal(findings[0]?.finding, 'journal-writers');
  });
});

describe('capacity on each node', () => {
  const environment = ['NODE_NAME', 'NAMESPACE', 'POD_NAME'].map((name) => ({ name, value: 'x' }));
  const objects = access(clusterRules, [
    ...leaseRules,
    rule('storage.k8s.io', 'csistoragecapacities', 'list watch create update delete'),
    rule('', 'pods', 'get'),
    rule('apps', 'replicasets', 'get'),
  ]);
  for (const { level, says } of [
    { level: [], says: /--capacity-ownerref-level=1: .* a node that is gone stay as long as their owner/ },
    { level: ['--capacity-ownerref-level=2'], says: /--capacity-ownerref-level=2: .* stay as long as their owner/ },
    { level: ['--capacity-ownerref-level=-1'], says: /--capacity-ownerref-level=-1: .* have no owner and stay/ },
    { level: ['--capacity-ownerref-level=0'] },
    { level: ['--enable-capacity=false'] },
  ]) {
    const stays = says === undefined ? 'leaves nothing' : 'stays';
    test(`${stays} when a node goes, ${level.join(' ') || 'with the default owner'}`, async () => {
      const args = [socket, '--node-deployment', '--enable-capacity', ...level];
      const sidecar = await sidecarOf({ kind: 'DaemonSet', args, container: { env: environment } }, objects);
      assert.deepEqual(named(sidecar), says === undefined ? [] : ['warning every-node']);
      if (says !== undefined) assert.match(sidecar.findings[0]?.message ?? '', says);
    });
  }
});

describe('the driver of a sidecar', () => {
  const storage = 'storage.k8s.io/v1';
  const csiDriver = (name: string, spec: Json = {}): Json => ({
    apiVersion: storage,
    kind: 'CSIDriver',
    metadata: { name },
    spec: { attachRequired: false, ...spec },
  });
  const storageClass = (provisioner: string): Json => ({
    apiVersion: storage,
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner,
  });
  const driverOf = (name: string): Json => ({ ...other, args: [`--drivername=${name}`] });
  const publishing: DriverOptions = {
    args: [...elected, '--enable-capacity'],
    container: { env: ['NAMESPACE', 'POD_NAME'].map((name) => ({ name, value: 'x' })) },
  };
  const capacityRights = access(clusterRules, [
    ...leaseRules,
    rule('storage.k8s.io', 'csistoragecapacities', 'get list watch create update delete'),
    rule('', 'pods', 'get'),
    rule('apps', 'replicasets', 'get'),
  ]);
  const elsewhere = (name: string): Json => {
    const { metadata, ...rest } = workload({ beside: [driverOf(name)], pod: { serviceAccountName: 'elsewhere' } });
    return { ...rest, metadata: { ...(metadata as Json), namespace: 'elsewhere' } };
  };
  const [compared, plain] = [csiDriver('d.example.com', { storageCapacity: true }), csiDriver('d.example.com')];

  const given: readonly {
    name: string;
    driver?: DriverOptions;
    objects: readonly Json[];
    want: string[];
    says?: RegExp;
  }[] = [
    {
      name: 'whose capacity nobody publishes',
      objects: [compared],
      want: ['must capacity'],
      says: /CSIDriver d\.example\.com has storageCapacity: true, and no sidecar of it has --enable-capacity/,
    },
    { name: 'whose capacity it publishes', driver: publishing, objects: [compared], want: [] },
    {
      name: 'whose capacity it publishes for nobody',
      driver: publishing,
      objects: [plain],
      want: ['warning capacity'],
      says: /the scheduler does not read them/,
    },
    {
      name: 'that is one of several and named in an argument',
      driver: { beside: [driverOf('d.example.com')] },
      objects: [compared, csiDriver('sub.d.example.com')],
      want: ['must capacity'],
    },
    {
      name: 'that is one of several, and nothing names it',
      objects: [compared, csiDriver('e.example.com')],
      want: [],
    },
    {
      name: 'that another workload in another namespace provisions for as well',
      driver: { beside: [driverOf('d.example.com')] },
      objects: [plain, elsewhere('d.example.com')],
      want: ['must same-driver'],
      says: /^Deployment elsewhere\/driver-controller provisions for CSI driver d\.example\.com as well, and its leader is not elected in namespace storage/,
    },
    {
      name: 'beside one of another driver in another namespace',
      driver: { beside: [driverOf('d.example.com')] },
      objects: [plain, csiDriver('e.example.com'), elsewhere('e.example.com')],
      want: [],
    },
    {
      name: 'that a class names with a letter too many',
      objects: [plain, storageClass('d.examplee.com')],
      want: ['warning class-driver'],
      says: /StorageClass fast names the provisioner d\.examplee\.com, .* CSIDriver d\.example\.com has nearly the same name/,
    },
    {
      name: 'beside a class that names a provisioner of which there is nothing',
      objects: [plain, storageClass('other.example.org')],
      want: ['note class-driver'],
    },
    { name: 'that a class names', objects: [plain, storageClass('d.example.com')], want: [] },
    { name: 'beside a class of an in-tree plugin', objects: [plain, storageClass('kubernetes.io/aws-ebs')], want: [] },
    {
      name: 'beside a class of a provisioner that has no CSIDriver',
      objects: [
        plain,
        storageClass('nfs.example.org'),
        {
          ...workload({
            pod: {
              containers: [{ name: 'nfs', image: 'nfs', env: [{ name: 'NAME', value: 'nfs.example.org' }] }],
              serviceAccountName: 'nfs',
            },
          }),
          metadata: { name: 'nfs', namespace: 'nfs' },
        },
      ],
      want: [],
    },
  ];
  for (const { name, driver = {}, objects, want, says } of given) {
    test(name, async () => {
      const sidecar = await sidecarOf(driver, [...(driver === publishing ? capacityRights : access()), ...objects]);
      const own = named(sidecar).filter((each) => /capacity|same-driver|class-driver/.test(each));
      assert.deepEqual(own, want);
      if (says !== undefined)
        assert.match(
          sidecar.findings.find((each) => want.includes(`${each.level} ${each.finding}`))?.message ?? '',
          says,
        );
    });
  }
});
describe('the verdict', () => {
  for (const [name, driver, want] of [
    ['of no finding is ready', {}, 'ready'],
    ['is the worst level', { args: [...elected, '--bogus', '--timeout=60s'] }, 'must'],
    ['of notes is note', { args: [...elected, '--kube-api-qps=5'] }, 'note'],
  ] as const) {
    test(name, async () => {
      assert.equal((await reportOf([workload(driver), ...access()])).verdict, want);
    });
  }
});
