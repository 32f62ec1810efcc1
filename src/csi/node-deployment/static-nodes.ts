import type { KubeObject } from '../../kube/kube-object.ts';
import type { Lister } from '../../kube/cache/store.ts';
import type { NodeInfo } from '../driver-info.ts';
import type { CsiNode, TopologyNode, TopologyNodes } from '../topology/topology-nodes.ts';

export interface StaticNodesOptions {
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
