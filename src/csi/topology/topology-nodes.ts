/** What topology reads of the cluster's nodes, and the caches that hold no more than that. */
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { Informer } from '../../kube/cache/informer.ts';
import type { ReflectorMetrics } from '../../kube/cache/reflector-metrics.ts';
import { type Lister, SharedValues } from '../../kube/cache/store.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { type KubeObject, markReduced, type Resource } from '../../kube/kube-object.ts';
import { messageDecoder } from '../../kube/protobuf/message-decoder.ts';
import type { NodeInfo } from '../driver-info.ts';

/** core/v1 Node: topology reads its name and labels. */
export type TopologyNode = KubeObject;

/** storage.k8s.io/v1 CSINode: which drivers a node runs, and each driver's topology keys. */
export interface CsiNode extends KubeObject {
  spec: { drivers?: CsiNodeDriver[] | null };
}

interface CsiNodeDriver {
  name: string;
  nodeID?: string;
  topologyKeys?: string[] | null;
}

/** Nodes and CSINodes by name: caches of the cluster, or in node deployment the own node alone. */
export interface TopologyNodes {
  nodes: Lister<TopologyNode>;
  csiNodes: Lister<CsiNode>;
  /** A number that changes with the labels and topology keys of nodes; without it no result is remembered. */
  changes?: () => number;
}

/** The resource of nodes. */
export const nodeResource: Resource = {
  group: '',
  version: 'v1',
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
};

/** The resource of CSINodes. */
export const csiNodeResource: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'csinodes',
  kind: 'CSINode',
  namespaced: false,
};

/** The driver's topology keys on a node, in the order of the CSINode; undefined: the driver is not registered there. */
export function topologyKeysOf(csiNode: CsiNode, driverName: string): readonly string[] | undefined {
  const driver = csiNode.spec.drivers?.find(({ name }) => name === driverName);
  return driver === undefined ? undefined : (driver.topologyKeys ?? []);
}

/** The caches of a cluster; the caller that makes them runs them. */
export interface NodeInformers extends TopologyNodes {
  nodes: Informer<TopologyNode>;
  csiNodes: Informer<CsiNode>;
  changes: () => number;
}

/** Only the caches, by name, for the caller that runs them and waits for them. */
export function nodeCaches({ nodes, csiNodes }: NodeInformers): Pick<NodeInformers, 'nodes' | 'csiNodes'> {
  return { nodes, csiNodes };
}

const bareFields = { name: true, uid: true, resourceVersion: true } as const;

/** Makes both caches; nothing is read before they are run. A node's heartbeat reaches no handler: only labels and keys count. */
export function nodeInformers(options: {
  transport: Transport;
  driverName: string;
  metrics: (resource: string) => ReflectorMetrics;
  clock: Clock;
  logger: Logger;
}): NodeInformers {
  const { driverName, metrics, ...common } = options;
  const shared = new SharedValues();
  const bare = ({ metadata: { name, uid, resourceVersion } }: KubeObject): KubeObject['metadata'] =>
    ({ name, uid, resourceVersion }) as KubeObject['metadata'];
  let changes = 0;
  const sameNode = (old: TopologyNode, node: TopologyNode): boolean =>
    sameLabels(old.metadata.labels, node.metadata.labels);
  const sameCsiNode = (old: CsiNode, csiNode: CsiNode): boolean => old.spec === csiNode.spec;
  const counted =
    <T>(same: (old: T, object: T) => boolean) =>
    (old: T | undefined, object: T | undefined): void => {
      if (old === undefined || object === undefined || !same(old, object)) changes += 1;
    };
  return {
    changes: () => changes,
    nodes: new Informer<TopologyNode>({
      ...common,
      resource: nodeResource,
      transform: (node) => {
        const labels: Record<string, string> = {};
        for (const [key, value] of Object.entries(node.metadata.labels ?? {}))
          labels[shared.string(key)] = shared.string(value);
        return markReduced({ metadata: { ...bare(node), labels } });
      },
      protobuf: messageDecoder('Node', { metadata: { ...bareFields, labels: true } }),
      sameContent: sameNode,
      onStoreChange: counted(sameNode),
      metrics: metrics(nodeResource.plural),
    }),
    csiNodes: new Informer<CsiNode>({
      ...common,
      resource: csiNodeResource,
      transform: (object) => {
        const own = (object as CsiNode).spec.drivers?.filter(({ name }) => name === driverName) ?? [];
        const drivers = own.map(({ name, topologyKeys }) => ({ name, topologyKeys: topologyKeys ?? [] }));
        return markReduced({ metadata: bare(object), spec: shared.value({ drivers }) });
      },
      protobuf: messageDecoder('CSINode', {
        metadata: bareFields,
        spec: { drivers: { name: true, topologyKeys: true } },
      }),
      sameContent: sameCsiNode,
      onStoreChange: counted(sameCsiNode),
      metrics: metrics(csiNodeResource.plural),
    }),
  };
}

function sameLabels(a: Record<string, string> = {}, b: Record<string, string> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

interface StaticNodesOptions {
  driverName: string;
  nodeName: string;
  /** Read each time: a restarted driver may report another topology. */
  nodeInfo: () => NodeInfo;
}

/**
 * The own node instead of the cluster's nodes, from what the driver reports: its segments are the labels of the Node,
 * and their keys the topology keys of the CSINode. No other node exists.
 */
export function staticNodes({ driverName, nodeName, nodeInfo }: StaticNodesOptions): TopologyNodes {
  const metadata = (labels: Record<string, string>): KubeObject['metadata'] => ({ name: nodeName, labels });
  return {
    nodes: onlyObject<TopologyNode>(nodeName, () => ({ metadata: metadata({ ...nodeInfo().segments }) })),
    csiNodes: onlyObject<CsiNode>(nodeName, () => {
      const { nodeId, segments = {} } = nodeInfo();
      const driver = { name: driverName, nodeID: nodeId, topologyKeys: Object.keys(segments) };
      return { metadata: metadata({}), spec: { drivers: [driver] } };
    }),
  };
}

function onlyObject<T>(name: string, read: () => T): Lister<T> {
  return {
    get: (key) => (key === name ? read() : undefined),
    list: () => [read()],
    byIndex: (indexName) => {
      throw new Error(`there is no index ${indexName}`);
    },
  };
}
