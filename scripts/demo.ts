/** `npm run demo`: two claims become volumes and go again, step by step. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type LocalCluster, sampleDriverName as driverName, startCluster } from '../sandbox/cluster/cluster.ts';
import { type ApiObject, KubeApi } from './kube-api.ts';

interface Claim extends ApiObject {
  spec: { volumeName?: string };
  status?: { phase?: string };
}

interface Volume extends ApiObject {
  spec: {
    capacity: { storage: string };
    csi: { driver: string; volumeHandle: string };
    claimRef: { namespace: string; name: string };
    persistentVolumeReclaimPolicy: string;
    storageClassName: string;
  };
  status?: { phase?: string };
}

interface Event extends ApiObject {
  reason: string;
  message: string;
  involvedObject: { name: string };
  source: { component: string };
}

const namespace = 'demo';
const patienceMs = 30_000;
const startedMs = performance.now();

/** The plot: start, immediate claim, late claim with a pod, events, deletion. */
async function main(): Promise<void> {
  title('Starting a small cluster: a Kubernetes API, a CSI driver and the sidecar');
  await using cluster = await startCluster({ report: step, progress: step });
  step(`the API is at ${cluster.url}, driver ${cluster.driver.name} at ${cluster.driverSocket}`);
  const api = new KubeApi(cluster.url);
  await createClasses(api);
  await immediateClaim(api, cluster);
  await lateClaim(api, cluster);
  await showEvents(api);
  await deleteAll(api, cluster);
  title('Ending all of it and removing its folder');
}

async function createClasses(api: KubeApi): Promise<void> {
  title('A secret, and two classes that hand it to the driver');
  await api.create('namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await api.create('secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'backend-login', namespace },
    stringData: { password: 'not shown anywhere' },
  });
  for (const [name, mode] of [
    ['fast', 'Immediate'],
    ['late', 'WaitForFirstConsumer'],
  ] as const) {
    await api.create('storageclasses', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name },
      provisioner: driverName,
      reclaimPolicy: 'Delete',
      volumeBindingMode: mode,
      parameters: {
        requireSecret: 'password', // the driver refuses to work without it
        'csi.storage.k8s.io/provisioner-secret-name': 'backend-login',
        'csi.storage.k8s.io/provisioner-secret-namespace': '${pvc.namespace}',
      },
    });
    step(`class ${name}: ${mode}, provisioner secret from the claim's namespace`);
  }
}

async function immediateClaim(api: KubeApi, cluster: LocalCluster): Promise<void> {
  title('A claim of class fast: a volume at once');
  await createClaim(api, 'photos', 'fast', '5Gi');
  await showBound(api, cluster, 'photos');
}

async function lateClaim(api: KubeApi, cluster: LocalCluster): Promise<void> {
  title('A claim of class late: a volume once a pod needs it');
  await createClaim(api, 'database', 'late', '1.5Gi');
  await delay(300);
  const waiting = await api.get<Claim>('persistentvolumeclaims', 'database', namespace);
  step(`claim database is ${waiting?.status?.phase ?? 'unknown'}: it waits for its first consumer`);
  await api.create('pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'server', namespace },
    spec: {
      containers: [{ name: 'server', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'database' } }],
    },
  });
  step('pod server uses it; the scheduler chooses a node');
  await showBound(api, cluster, 'database');
  const pod = await eventually('the pod to be scheduled', async () => {
    const found = await api.get<ApiObject & { spec: { nodeName?: string } }>('pods', 'server', namespace);
    return found?.spec.nodeName === undefined ? undefined : found;
  });
  step(`pod server is on ${pod.spec.nodeName ?? ''}`);
}

async function createClaim(api: KubeApi, name: string, className: string, storage: string): Promise<void> {
  await api.create('persistentvolumeclaims', {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: className, resources: { requests: { storage } } },
  });
  step(`claim ${name} asks for ${storage}`);
}

async function showBound(api: KubeApi, cluster: LocalCluster, name: string): Promise<void> {
  const fromMs = performance.now();
  const claim = await eventually(`claim ${name} to be bound`, async () => {
    const found = await api.get<Claim>('persistentvolumeclaims', name, namespace);
    return found?.status?.phase === 'Bound' ? found : undefined;
  });
  const volume = await api.get<Volume>('persistentvolumes', claim.spec.volumeName ?? '');
  if (volume === undefined) throw new Error(`claim ${name} is bound to a volume that is not there`);
  const { capacity, csi, persistentVolumeReclaimPolicy: policy } = volume.spec;
  step(`claim ${name} is Bound after ${Math.round(performance.now() - fromMs)} ms`);
  show(`volume    ${volume.metadata.name}`);
  show(`capacity  ${capacity.storage}, policy ${policy}, phase ${volume.status?.phase ?? ''}`);
  show(`driver    ${csi.driver}, handle ${csi.volumeHandle}`);
  const folder = path.join(cluster.volumesFolder ?? '', csi.volumeHandle);
  const [entries, record] = [await readdir(folder), await readFile(path.join(folder, 'record.json'), 'utf8')];
  if (record.includes('not shown anywhere')) throw new Error('the driver wrote down a secret');
  show(`on disk   ${folder}: ${entries.join(', ')}`);
}

async function showEvents(api: KubeApi): Promise<void> {
  title('The events that the sidecar recorded for the claims');
  const recorded = await eventually('both success events', async () => {
    const events = (await api.list<Event>('events', namespace)).filter(({ source }) =>
      source.component.startsWith(`${driverName}_`),
    );
    return events.filter(({ reason }) => reason === 'ProvisioningSucceeded').length >= 2 ? events : undefined;
  });
  for (const { involvedObject, reason, message } of recorded) show(`${involvedObject.name}: ${reason}: ${message}`);
}

async function deleteAll(api: KubeApi, cluster: LocalCluster): Promise<void> {
  title('Deleting pod and claims: their volumes go, too');
  const fromMs = performance.now();
  await api.delete('pods', 'server', namespace);
  for (const name of ['photos', 'database']) await api.delete('persistentvolumeclaims', name, namespace);
  await eventually('the volumes to be gone', async () =>
    (await api.list('persistentvolumes')).length === 0 ? true : undefined,
  );
  const left = (await readdir(cluster.volumesFolder ?? '')).filter((entry) => !entry.startsWith('.'));
  if (left.length > 0) throw new Error(`folders are left in ${cluster.volumesFolder ?? ''}: ${left.join(', ')}`);
  step(`both volumes and their folders are gone after ${Math.round(performance.now() - fromMs)} ms`);
}

async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const endMs = performance.now() + patienceMs;
  while (performance.now() < endMs) {
    const found = await look();
    if (found !== undefined) return found;
    await delay(20);
  }
  throw new Error(`waited ${patienceMs / 1000} s in vain for ${what}`);
}

function title(text: string): void {
  console.log(`\n${text}`);
}

function step(text: string): void {
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(2);
  console.log(`${seconds.padStart(7)} s  ${text}`);
}

function show(text: string): void {
  console.log(`           ${text}`);
}

await main();
console.log('\nThat was all. `npm run sandbox` leaves such a cluster standing for you.');
