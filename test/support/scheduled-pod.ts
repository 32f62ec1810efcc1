/* eslint-disable @typescript-eslint/no-unsafe-class-instance-assignment -- the client library's models are plain data */
import type { V1PodSpec } from '@kubernetes/client-node';
import { ifFound } from './admin.ts';
import type { Scene } from './scene.ts';

/** What pods and nodes need of a scene. */
export type PodScene = Pick<Scene, 'admin' | 'namespace' | 'eventually'> & { driver: { driverName: string } };

/** Labels of a node made by a test; `kubernetes.io/hostname` is set anyway. */
export interface NodeOptions {
  name: string;
  labels?: Record<string, string>;
}

/**
 * Makes a node and its CSINode, as a kubelet with the scene's driver would. Nothing ever runs on it.
 *
 * @returns a function that removes both.
 */
export async function createNode(scene: PodScene, { name, labels = {} }: NodeOptions): Promise<() => Promise<void>> {
  const { core, storage } = scene.admin;
  const node = await core.createNode({
    body: {
      metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
      status: {
        allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
        capacity: { cpu: '4', memory: '8Gi', pods: '110' },
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
  });
  await storage.createCSINode({
    body: {
      metadata: {
        name,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: node.metadata?.uid ?? '' }],
      },
      spec: { drivers: [{ name: scene.driver.driverName, nodeID: name, topologyKeys: Object.keys(labels) }] },
    },
  });
  return async () => {
    await ifFound(storage.deleteCSINode({ name }));
    await ifFound(core.deleteNode({ name }));
  };
}

/**
 * Makes a pod that uses the claim and may only run on the node, if one is named; the scheduler does the rest.
 *
 * @param spec - further fields.
 */
export async function createPod(
  scene: PodScene,
  claimName: string,
  nodeName?: string,
  spec: Partial<V1PodSpec> = {},
): Promise<string> {
  const name = `uses-${claimName}`;
  // The service account of a new namespace appears a moment after it; until then the API server refuses pods.
  await scene.eventually(() =>
    scene.admin.core.createNamespacedPod({
      namespace: scene.namespace,
      body: {
        metadata: { name },
        spec: {
          ...(nodeName !== undefined && { nodeSelector: { 'kubernetes.io/hostname': nodeName } }),
          containers: [{ name: 'main', image: 'none', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }],
          ...spec,
        },
      },
    }),
  );
  return name;
}

/** Waits until the scheduler has put the pod on a node, and gives its name. */
export async function scheduledNode(scene: PodScene, podName: string): Promise<string> {
  return await scene.eventually(async () => {
    const pod = await scene.admin.core.readNamespacedPod({ name: podName, namespace: scene.namespace });
    if (pod.spec?.nodeName === undefined) {
      throw new Error(`pod ${podName} is not scheduled: ${JSON.stringify(pod.status?.conditions)}`);
    }
    return pod.spec.nodeName;
  });
}

/** Removes a pod at once: no kubelet would confirm its end. */
export async function deletePod(scene: PodScene, name: string): Promise<void> {
  await scene.admin.core.deleteNamespacedPod({ name, namespace: scene.namespace, gracePeriodSeconds: 0 });
}
