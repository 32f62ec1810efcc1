import type { Clock } from '../../src/base/clock.ts';
import type { SandboxClient } from '../api/client.ts';
import { timestamp } from '../api/timestamps.ts';
import { resources } from './objects.ts';

/** A node to create. */
export interface NodeSketch {
  name: string;
  /** Value of the label `topology.kubernetes.io/zone`; default none. */
  zone?: string;
  /** More labels, and taints that keep pods away. */
  labels?: Record<string, string>;
  taints?: { key: string; value?: string; effect: string }[];
}

/** A CSI driver to register on every node. */
export interface NodeDriver {
  name: string;
  /** Keys of the node labels that make up the driver's topology; default none. */
  topologyKeys?: string[];
}

/** What `createNodes` needs. */
export interface CreateNodesOptions {
  client: SandboxClient;
  clock: Clock;
  nodes: readonly NodeSketch[];
  /** Default none, and then no CSINode either. */
  drivers?: readonly NodeDriver[];
}

/**
 * Creates ready nodes, and for each a CSINode with the drivers, as a kubelet would register them.
 * @throws {StatusError} `AlreadyExists` for the first name that is taken.
 */
export function createNodes({ client, clock, nodes, drivers = [] }: CreateNodesOptions): void {
  for (const node of nodes) {
    const { uid = '' } = createNode(client, node, timestamp(clock.wallMs()));
    if (drivers.length === 0) continue;
    client.create(resources.csiNodes, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSINode',
      metadata: { name: node.name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid }] },
      spec: { drivers: drivers.map(({ name, topologyKeys = [] }) => ({ name, nodeID: node.name, topologyKeys })) },
    });
  }
}

function createNode(client: SandboxClient, { name, zone, labels, taints }: NodeSketch, now: string): { uid?: string } {
  const { metadata } = client.create(resources.nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        ...(zone === undefined ? {} : { 'topology.kubernetes.io/zone': zone }),
        ...labels,
      },
    },
    spec: taints === undefined ? {} : { taints },
    status: {
      conditions: [
        { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now, lastTransitionTime: now },
      ],
    },
  });
  return metadata;
}
