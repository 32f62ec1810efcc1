/**
 * The clusters of the topology cases and their short notation: `Z=z1,R=rA` for labels, `{R=rA,Z=z1} {Z=z2}` for terms,
 * `(Z:z1|z2 & R:rA) or (G:us)` for allowed topologies, where `∅` stands for no values.
 */
import { silentLogger } from '../../src/base/logger.ts';
import type { CsiNode, TopologyNode } from '../../src/csi/topology/topology-nodes.ts';
import { Store } from '../../src/kube/cache/store.ts';
import type { TopologySelectorTerm } from '../../src/provision/objects.ts';

export const driverName = 'd.example.com';

const keyOf: Record<string, string> = { Z: 'ex.com/zone', R: 'ex.com/rack', G: 'ex.com/region' };

function longKey(letter: string): string {
  return keyOf[letter] ?? letter;
}

/** A node and its CSINode. */
export interface SampleNode {
  name: string;
  /** Absent: there is no Node. */
  labels?: string;
  /** Of the driver: keys, `null` for null, `other` where only another driver runs. Absent: there is no CSINode. */
  keys?: string;
}

function withKeys(keys: string, labels: Record<string, string>): SampleNode[] {
  return Object.entries(labels).map(([name, each]) => ({ name, labels: each, keys }));
}

const clusters = {
  'one zone': withKeys('Z', { n1: 'Z=z1', n2: 'Z=z1', n3: 'Z=z1' }),
  'three zones': withKeys('Z', { n1: 'Z=z1', n2: 'Z=z2', n3: 'Z=z2', n4: 'Z=z3' }),
  'four racks': withKeys('Z,R', { n1: 'Z=z1,R=rA', n2: 'Z=z2,R=rB', n3: 'Z=z3,R=rC', n4: 'Z=z4,R=rD' }),
  'racks across zones': withKeys('Z,R', { n1: 'Z=z2,R=rA', n2: 'Z=z1,R=rA', n3: 'Z=z1,R=rB' }),
  'different keys': [...withKeys('Z', { n1: 'Z=z1' }), ...withKeys('Z,R', { n2: 'Z=z1,R=rA', n3: 'Z=z1,R=rA' })],
  'regions, one with zones': [...withKeys('G', { n1: 'G=us,Z=z1' }), ...withKeys('G,Z', { n2: 'G=us,Z=z2' })],
  'zones beside racks': [...withKeys('Z', { n1: 'Z=z1,R=rA' }), ...withKeys('R', { n2: 'Z=z2,R=rB' })],
  'zones beside missing racks': [...withKeys('Z', { n1: 'Z=z1' }), ...withKeys('R', { n2: 'Z=z2' })],
  'no labels for several keys': [
    ...withKeys('Z', { n1: 'foo=bar' }),
    ...withKeys('Z,G', { n2: 'G=us' }),
    ...withKeys('R', { n3: 'Z=z1' }),
  ],
  'no zone labels': withKeys('Z', { n1: 'foo=bar' }),
  'one node with keys': [
    { name: 'n1', labels: 'Z=z1', keys: 'other' },
    { name: 'n2', labels: 'Z=z2', keys: 'null' },
    { name: 'n3', labels: 'Z=z3', keys: 'Z' },
  ],
  'no CSINodes': [
    { name: 'n1', labels: 'Z=z1' },
    { name: 'n2', labels: 'Z=z2' },
  ],
  'no nodes': [
    { name: 'n1', keys: 'Z' },
    { name: 'n2', keys: 'Z' },
  ],
  'zones to sort': withKeys('Z', { n1: 'Z=z10', n2: 'Z=z2', n3: 'Z=z1', n4: 'Z=Z9' }),
  'some labels missing': withKeys('Z,R', { n1: 'Z=z1,R=rA', n2: 'Z=z2', n3: 'R=rC', n4: 'Z=z2,R=rB' }),
  'keys in any order': [
    { name: 'n1', labels: 'Z=z1,R=r1,G=us', keys: 'R,Z,G' },
    { name: 'n2', labels: 'Z=z2,R=r2,G=us', keys: 'Z,G,R' },
    { name: 'n3', labels: 'Z=z1,R=r2,G=us', keys: 'G,R,Z' },
  ],
  'an empty zone': withKeys('Z', { n1: 'Z=', n2: 'Z=z1' }),
  'three racks in three zones': withKeys('Z,R', { n1: 'Z=z1,R=rA', n2: 'Z=z2,R=rB', n3: 'Z=z3,R=rC' }),
} satisfies Record<string, SampleNode[]>;

export type ClusterName = keyof typeof clusters;

export function nodesOf(cluster: ClusterName): readonly SampleNode[] {
  return clusters[cluster];
}

/** `Z=z1,foo=bar` as labels. */
export function labels(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [key = '', value = ''] = pair.split('=');
      return [longKey(key), value];
    }),
  );
}

/** `{R=rA,Z=z1} {Z=z2}` as CSI has it. */
export function terms(text: string): { segments: Record<string, string> }[] {
  return [...text.matchAll(/\{([^}]*)\}/g)].map(([, pairs = '']) => ({ segments: labels(pairs) }));
}

/** `(Z:z1|z2 & R:rA) or ()` as classes have it. */
export function allowed(text: string): TopologySelectorTerm[] {
  return [...text.matchAll(/\(([^)]*)\)/g)].map(([, expressions = '']) => ({
    matchLabelExpressions: expressions
      .split(' & ')
      .filter((expression) => expression !== '')
      .map((expression) => {
        const [key = '', values = ''] = expression.split(':');
        return { key: longKey(key), values: values === '∅' ? [] : values.split('|') };
      }),
  }));
}

/** The Node, if there is one. */
export function nodeObject({ name, labels: text }: SampleNode): TopologyNode | undefined {
  if (text === undefined) return undefined;
  return { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: labels(text) } };
}

/** The CSINode, if there is one; it also has another driver with keys of its own. */
export function csiNodeObject({ name, keys }: SampleNode): CsiNode | undefined {
  if (keys === undefined) return undefined;
  const own = { name: driverName, nodeID: name, topologyKeys: keys === 'null' ? null : keys.split(',').map(longKey) };
  const other = { name: 'other.example.com', nodeID: name, topologyKeys: ['other.example.com/host'] };
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name },
    spec: { drivers: keys === 'other' ? [other] : [other, own] },
  };
}

/** Caches with these nodes, which a test may change. */
export function nodeStores(nodes: readonly SampleNode[]): { nodes: Store<TopologyNode>; csiNodes: Store<CsiNode> } {
  const stores = {
    nodes: new Store<TopologyNode>({ logger: silentLogger, freeze: true }),
    csiNodes: new Store<CsiNode>({ logger: silentLogger, freeze: true }),
  };
  for (const each of nodes) {
    const [node, csiNode] = [nodeObject(each), csiNodeObject(each)];
    if (node !== undefined) stores.nodes.set(node);
    if (csiNode !== undefined) stores.csiNodes.set(csiNode);
  }
  return stores;
}
