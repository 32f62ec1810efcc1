/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** A real control plane full of claims in use, with a few among them for `why` to explain. */
import { V1MicroTime } from '@kubernetes/client-node';
import { readerKubeconfig } from './why-command.ts';
import { connectAdmin, type Admin } from './admin.ts';
import { type AuditEvent, readAuditLog } from './control-plane/audit-log.ts';
import { type ControlPlane, startControlPlane } from './control-plane/control-plane.ts';
import { findPrograms } from './control-plane/programs.ts';
import { installKinds, referenceGrantKind } from './custom-kinds.ts';
import { attachToCluster } from './kubernetes-cluster.ts';
import { boundPair } from './bound-pair.ts';
import { putObjects, type StoredObject } from './etcd-objects.ts';

export const driverName = 'crowd.csi.example.com';
const namespace = 'team-0';
const neighbour = boundPair(1, driverName).claim.metadata;
const nodes = 300;

export interface CrowdOptions {
  /** Bound claims, with as many volumes and attachments, in 200 namespaces. */
  claims: number;
  /** Events about other objects, and as many running Pods, in the namespace of the claims to explain. */
  events: number;
  /** Minor version of Kubernetes; default: the newest that is there. */
  minor?: string | undefined;
}

/** The objects that can be asked about, as `why` names them. */
export interface CrowdedCluster extends AsyncDisposable {
  /** With the permissions that docs/why.md asks for. */
  readonly kubeconfig: string;
  /** A clone of a claim in another namespace, with an attributes class and a Secret, whose driver fails. */
  readonly failing: string;
  /** Waits for a Pod. */
  readonly waiting: string;
  readonly bound: string;
  /** A released volume that its driver fails to delete. */
  readonly leftover: string;
  /** The requests that `why` has sent so far. */
  requests(): Promise<AuditEvent[]>;
}

/** Starts it; takes about a minute. */
export async function startCrowdedCluster({ claims, events, minor }: CrowdOptions): Promise<CrowdedCluster> {
  await using cleanup = new AsyncDisposableStack();
  const plane = cleanup.use(
    await startControlPlane({
      binDir: await findPrograms({ minor }),
      auditLog: true,
      extraArgs: {
        'kube-apiserver': [
          '--feature-gates=CrossNamespaceVolumeDataSource=true,VolumeAttributesClass=true',
          '--runtime-config=storage.k8s.io/v1beta1=true', // attributes classes of Kubernetes before 1.34
        ],
      },
    }),
  );
  await plane.stopControllerManager(); // everything is bound already
  const cluster = await attachToCluster(plane.adminKubeconfig);
  cleanup.defer(() => cluster.stop());
  const admin = connectAdmin(plane.adminKubeconfig);
  await installKinds(cluster, admin, [referenceGrantKind]);
  await putObjects(plane.etcdUrl, crowd(claims, events));
  const kubeconfig = await readerKubeconfig(cluster, 'crowd');
  await createSubjects(admin, plane);
  const bound = boundPair(0, driverName).claim.metadata;
  const owned = cleanup.move();
  return {
    kubeconfig,
    failing: `${namespace}/failing`,
    waiting: `${namespace}/waiting`,
    bound: `${bound.namespace}/${bound.name}`,
    leftover: 'pv/leftover',
    requests: () => requestsOf(plane),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function requestsOf({ auditLogFile = '' }: ControlPlane): Promise<AuditEvent[]> {
  const requests: AuditEvent[] = [];
  for await (const event of readAuditLog(auditLogFile)) {
    if (event.user.username.endsWith(':crowd-why')) requests.push(event);
  }
  return requests;
}

function* crowd(claims: number, events: number): Generator<StoredObject> {
  for (let index = 0; index < nodes; index++) yield* node(`node-${index}.example.com`);
  for (let index = 0; index < claims; index++) {
    const { claim, volume } = boundPair(index, driverName);
    yield { key: `persistentvolumeclaims/${claim.metadata.namespace}/${claim.metadata.name}`, object: claim };
    yield { key: `persistentvolumes/${volume.metadata.name}`, object: volume };
    yield attachment(index, volume.metadata.name);
  }
  for (let index = 0; index < events; index++) yield* busyPod(index);
}

const creationTimestamp = '2026-03-01T08:15:00Z';

function* node(name: string): Generator<StoredObject> {
  const metadata = { name, uid: name, creationTimestamp };
  yield { key: `minions/${name}`, object: { apiVersion: 'v1', kind: 'Node', metadata } };
  yield {
    key: `csinodes/${name}`,
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata,
      spec: { drivers: [{ name: driverName, nodeID: name, topologyKeys: ['topology.kubernetes.io/zone'] }] },
    },
  };
  yield {
    key: `leases/kube-node-lease/${name}`,
    object: {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...metadata, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: 40 },
    },
  };
}

function attachment(index: number, volumeName: string): StoredObject {
  const name = `csi-${index}`;
  return {
    key: `volumeattachments/${name}`,
    object: {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: {
        name,
        uid: name,
        creationTimestamp,
        annotations: { 'csi.alpha.kubernetes.io/node-id': `node-${index % nodes}.example.com` },
        finalizers: [`external-attacher/${driverName.replaceAll('.', '-')}`],
      },
      spec: {
        attacher: driverName,
        nodeName: `node-${index % nodes}.example.com`,
        source: { persistentVolumeName: volumeName },
      },
      status: { attached: true, attachmentMetadata: { devicePath: `/dev/disk/by-id/${name}` } },
    },
  };
}

/** A running Pod, and the event that it was started. */
function* busyPod(index: number): Generator<StoredObject> {
  const name = `service-${index}`;
  const metadata = { name, namespace, uid: name, creationTimestamp };
  yield {
    key: `pods/${namespace}/${name}`,
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: {
        nodeName: `node-${index % nodes}.example.com`,
        containers: [{ name: 'main', image: 'registry.example.com/service:1.2.3' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `data-${name}` } }],
      },
      status: { phase: 'Running' },
    },
  };
  yield {
    key: `events/${namespace}/${name}.1`,
    object: {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { ...metadata, name: `${name}.1`, uid: `${name}.1` },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name, uid: name },
      reason: 'Started',
      message: 'Container main was started on its node after its image had been found there',
      source: { component: 'kubelet', host: `node-${index % nodes}.example.com` },
      type: 'Normal',
      count: 1,
      firstTimestamp: creationTimestamp,
      lastTimestamp: creationTimestamp,
    },
  };
}

/** The objects to explain, and what they need. */
async function createSubjects(admin: Admin, plane: ControlPlane): Promise<void> {
  const { core, storage } = admin;
  for (const name of [namespace, neighbour.namespace]) await core.createNamespace({ body: { metadata: { name } } });
  await storage.createCSIDriver({ body: { metadata: { name: driverName }, spec: {} } });
  const now = new V1MicroTime(Date.now() + 3600_000); // valid until the benchmark ends
  await admin.coordination.createNamespacedLease({
    namespace: 'default',
    body: {
      metadata: { name: driverName.replaceAll('.', '-') },
      spec: { holderIdentity: 'pod-1', leaseDurationSeconds: 15, renewTime: now, acquireTime: now },
    },
  });
  await storage.createStorageClass({
    body: {
      metadata: { name: 'crowd' },
      provisioner: driverName,
      volumeBindingMode: 'WaitForFirstConsumer',
      parameters: {
        'csi.storage.k8s.io/provisioner-secret-name': 'key',
        'csi.storage.k8s.io/provisioner-secret-namespace': namespace,
      },
    },
  });
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: 'key' } } });
  const classVersion = await attributesVersion(admin);
  if (classVersion !== undefined) {
    await admin.objects.create({
      apiVersion: `storage.k8s.io/${classVersion}`,
      kind: 'VolumeAttributesClass',
      metadata: { name: 'gold' },
      driverName,
      parameters: { iops: '1000' },
    } as never);
  }
  await createGrant(admin);
  const claim = (name: string, spec: object, annotations: Record<string, string>) =>
    core.createNamespacedPersistentVolumeClaim({
      namespace,
      body: {
        metadata: { name, annotations },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '100Gi' } },
          storageClassName: 'crowd',
          ...spec,
        },
      },
    });
  await claim('waiting', {}, {});
  const { metadata } = await claim(
    'failing',
    {
      dataSourceRef: { kind: 'PersistentVolumeClaim', ...neighbour },
      ...(classVersion !== undefined && { volumeAttributesClassName: 'gold' }),
    },
    {
      'volume.kubernetes.io/storage-provisioner': driverName,
      'volume.kubernetes.io/selected-node': 'node-7.example.com',
    },
  );
  await failure(admin, { kind: 'PersistentVolumeClaim', namespace, name: 'failing', uid: metadata?.uid ?? '' });
  await putObjects(plane.etcdUrl, [leftover()]);
  await failure(admin, { kind: 'PersistentVolume', name: 'leftover', uid: 'leftover' });
}

/** Undefined where attributes classes are not served. */
async function attributesVersion({ objects }: Admin): Promise<string | undefined> {
  for (const version of ['v1', 'v1beta1']) {
    try {
      await objects.list(`storage.k8s.io/${version}`, 'VolumeAttributesClass');
      return version;
    } catch {
      // not served in this version
    }
  }
  return undefined;
}

async function createGrant({ custom }: Admin): Promise<void> {
  const { group, version, plural, kind } = referenceGrantKind;
  await custom.createNamespacedCustomObject({
    ...{ group, version, plural, namespace: neighbour.namespace },
    body: {
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name: 'claims' },
      spec: {
        from: [{ group: '', kind: 'PersistentVolumeClaim', namespace }],
        to: [{ group: '', kind: 'PersistentVolumeClaim' }],
      },
    },
  });
}

async function failure(
  { core }: Admin,
  involvedObject: { kind: string; namespace?: string; name: string; uid: string },
): Promise<void> {
  await core.createNamespacedEvent({
    namespace: involvedObject.namespace ?? 'default',
    body: {
      metadata: { generateName: 'failing-' },
      involvedObject,
      reason: involvedObject.kind === 'PersistentVolume' ? 'VolumeFailedDelete' : 'ProvisioningFailed',
      message: 'rpc error: code = Internal desc = on fire',
      source: { component: driverName },
      type: 'Warning',
      count: 3,
      firstTimestamp: new Date(),
      lastTimestamp: new Date(),
    },
  });
}

function leftover(): StoredObject {
  const metadata = { name: 'leftover', uid: 'leftover', creationTimestamp };
  return {
    key: 'persistentvolumes/leftover',
    object: {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { ...metadata, annotations: { 'pv.kubernetes.io/provisioned-by': driverName } },
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        claimRef: { kind: 'PersistentVolumeClaim', namespace, name: 'gone', uid: 'gone' },
        csi: { driver: driverName, volumeHandle: 'leftover' },
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'crowd',
      },
      status: { phase: 'Released' },
    },
  };
}
