/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
/** What happens to a sidecar in each recording: the states that the alerts are about. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, V1ClusterRole, V1StorageClass } from '@kubernetes/client-node';
import { connectDriver } from '../../test/support/driver-client.ts';
import { createNode } from '../../test/support/scheduled-pod.ts';
import type { Scene, SceneOptions } from '../../test/support/scene.ts';

export interface Story {
  name: string;
  scene?: SceneOptions;
  /** Goes on until the signal aborts; may end before. `flags` are those of the first sidecar. */
  play: (scene: Scene, signal: AbortSignal) => Promise<void>;
}

const minuteMs = 60_000;
const wait = (minutes: number, signal: AbortSignal): Promise<void> => sleep(minutes * minuteMs, undefined, { signal });

/** A name that does not change from recording to recording. */
async function makeClass(
  scene: Scene,
  name = 'gold',
  volumeBindingMode: V1StorageClass['volumeBindingMode'] = 'Immediate',
): Promise<string> {
  const kind = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass' };
  const fields = { provisioner: scene.driver.driverName, volumeBindingMode };
  await scene.admin.objects.create({ ...kind, metadata: { name }, ...fields });
  return name;
}

async function makeClaim(scene: Scene, className: string): Promise<string> {
  return (await scene.createClaim({ className })).metadata?.name ?? '';
}

/** Every half a minute a claim is made, bound and deleted. */
async function comeAndGo(scene: Scene, className: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const name = await makeClaim(scene, className);
    await scene.bound(name);
    await scene.deleteClaim(name);
    await wait(0.5, signal);
  }
}

/** Takes a verb of a resource out of the rights of the sidecar. */
async function forbid(scene: Scene, resource: string, ...verbs: string[]): Promise<void> {
  const { admin, cluster } = scene;
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  for (const kind of ['ClusterRole', 'Role']) {
    const namespace = kind === 'Role' ? cluster.sidecarNamespace : undefined;
    const { items } = await admin.objects.list<V1ClusterRole>(apiVersion, kind, namespace);
    for (const { metadata, rules = [] } of items) {
      if (metadata?.name?.startsWith('csi-provisioner') !== true) continue;
      for (const rule of rules) {
        if (rule.resources?.includes(resource) === true)
          rule.verbs = rule.verbs.filter((each) => !verbs.includes(each));
      }
      await admin.objects.replace({ apiVersion, kind, metadata, rules } as KubernetesObject);
    }
  }
}

/** As if the open records of the sidecar, which must not run, had been made so much earlier. */
async function ageRecords(scene: Scene, minutes: number): Promise<void> {
  const { coordination } = scene.admin;
  const namespace = scene.cluster.sidecarNamespace;
  const createdAt = `"createdAt":"${new Date(Date.now() - minutes * minuteMs).toISOString()}"`;
  for (const lease of (await coordination.listNamespacedLease({ namespace })).items) {
    const { name = '', annotations = {} } = lease.metadata ?? {};
    for (const [key, text] of Object.entries(annotations)) {
      annotations[key] = text.replaceAll(/"createdAt":"[^"]*"/g, createdAt);
    }
    await coordination.replaceNamespacedLease({ name, namespace, body: lease });
  }
}

/** Waits for a line of the log of the sidecar. */
async function logged(scene: Scene, text: string): Promise<void> {
  await scene.eventually(() => {
    if (!scene.sidecar.log().includes(text)) throw new Error(`not in the log: ${text}`);
  });
}

const fails = (method: string, message: string) => ({ method, code: 'INTERNAL', message }) as const;

export const stories: Story[] = [
  {
    name: 'healthy',
    scene: { sidecarFlags: ['--audit-interval=2m'] },
    play: async (scene, signal) => await comeAndGo(scene, await makeClass(scene), signal),
  },
  {
    name: 'waiting',
    play: async (scene) => {
      const className = await makeClass(scene, 'late', 'WaitForFirstConsumer');
      const annotations = { 'volume.kubernetes.io/storage-provisioner': scene.driver.driverName };
      await scene.createClaim({ className, annotations });
    },
  },
  {
    name: 'provisioning-fails',
    play: async (scene) => {
      await scene.driver.setFaults([fails('CreateVolume', 'pool p1 is offline')]);
      await makeClaim(scene, await makeClass(scene));
    },
  },
  {
    name: 'deletions-fail',
    play: async (scene) => {
      await scene.driver.setFaults([fails('DeleteVolume', 'pool p1 is offline')]);
      const name = await makeClaim(scene, await makeClass(scene));
      await scene.bound(name);
      await scene.deleteClaim(name);
    },
  },
  {
    name: 'stopped',
    play: async (scene, signal) => {
      await wait(5, signal);
      await scene.sidecar.stop();
    },
  },
  {
    name: 'killed-often',
    play: async (scene, signal) => {
      for (let kill = 0; kill < 5; kill++) {
        await wait(3, signal);
        await scene.sidecar.stop('SIGKILL');
        await scene.startSidecar();
      }
    },
  },
  {
    name: 'storage-lost',
    scene: { sidecarFlags: ['--audit-interval=2m'] },
    play: async (scene, signal) => {
      const { volume } = await scene.bound(await makeClaim(scene, await makeClass(scene)));
      await wait(8, signal);
      using driver = connectDriver(scene.driver.address);
      await driver.deleteVolume(volume.spec?.csi?.volumeHandle ?? '');
    },
  },
  {
    name: 'audits-fail',
    scene: { sidecarFlags: ['--audit-interval=2m'] },
    play: async (scene, signal) => {
      await wait(8, signal);
      await scene.driver.setFaults([fails('ListVolumes', 'the backend is down')]);
    },
  },
  {
    name: 'calls-slow',
    play: async (scene, signal) => {
      await scene.driver.setFaults([{ method: 'CreateVolume', delayMs: 27_000 }]);
      await comeAndGo(scene, await makeClass(scene), signal);
    },
  },
  {
    name: 'queue-grows',
    scene: { sidecarFlags: ['--worker-threads=1'] },
    play: async (scene, signal) => {
      await scene.driver.setFaults([{ method: 'CreateVolume', delayMs: 20_000 }]);
      const className = await makeClass(scene);
      for (;;) {
        await makeClaim(scene, className);
        await wait(0.1, signal);
      }
    },
  },
  {
    name: 'call-hangs',
    scene: { sidecarFlags: ['--timeout=2h'] },
    play: async (scene) => {
      await scene.driver.setFaults([{ method: 'CreateVolume', hang: true }]);
      await makeClaim(scene, await makeClass(scene));
    },
  },
  {
    name: 'no-leader',
    scene: {
      sidecarFlags: ['--leader-election'],
      rbac: ['components/leader-election/rbac.yaml'],
      beforeSidecar: async ({ admin, cluster }) => {
        const now = new Date().toISOString().replace('Z', '000Z');
        await admin.objects.create({
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: 'drv-example-com', namespace: cluster.sidecarNamespace },
          spec: { holderIdentity: 'gone', leaseDurationSeconds: 86_400, acquireTime: now, renewTime: now },
        } as KubernetesObject);
        return {};
      },
    },
    play: () => Promise.resolve(),
  },
  {
    name: 'not-permitted',
    scene: { restartsApiServer: true },
    play: async (scene, signal) => {
      await wait(5, signal);
      await forbid(scene, 'storageclasses', 'list', 'watch');
    },
  },
  {
    name: 'volumes-unsaved',
    scene: { restartsApiServer: true },
    play: async (scene) => {
      await forbid(scene, 'persistentvolumes', 'create');
      await makeClaim(scene, await makeClass(scene));
    },
  },
  {
    name: 'journal-unwritable',
    scene: { restartsApiServer: true },
    play: async (scene, signal) => {
      await wait(2, signal);
      await forbid(scene, 'leases', 'create', 'update');
      await makeClaim(scene, await makeClass(scene));
    },
  },
  {
    name: 'record-old',
    play: async (scene) => {
      await scene.driver.setFaults([{ method: 'CreateVolume', code: 'DEADLINE_EXCEEDED', message: 'pool p1 is busy' }]);
      await makeClaim(scene, await makeClass(scene));
      await logged(scene, 'pool p1 is busy');
      await scene.sidecar.stop('SIGKILL'); // the record stays
      await ageRecords(scene, 50);
      await scene.startSidecar();
    },
  },
  {
    name: 'capacity-missing',
    scene: {
      sidecarFlags: ['--enable-capacity', '--capacity-ownerref-level=-1'],
      rbac: ['components/capacity/rbac.yaml'],
      driverFlags: ['--topology=example.com/zone=a'],
    },
    play: async (scene) => {
      for (const zone of ['a', 'b']) {
        await createNode(scene, { name: `node-${zone}`, labels: { 'example.com/zone': zone } });
      }
      await scene.driver.setFaults([fails('GetCapacity', 'pool p1 is offline')]);
      await makeClass(scene, 'late', 'WaitForFirstConsumer');
    },
  },
  {
    name: 'api-server-silent',
    scene: { cluster: { ownCluster: true }, restartsApiServer: true },
    play: async (scene, signal) => {
      await wait(5, signal);
      scene.cluster.apiServer?.standStill();
      signal.addEventListener('abort', () => scene.cluster.apiServer?.goOn());
    },
  },
];
