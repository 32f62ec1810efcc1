/** What happens to claims when a driver and a sidecar with `--node-deployment` run on each node. */
import type { Volume } from '../control-plane/objects.ts';
import type { Bench, DriverPerNode, NodeUnderCheck } from './bench.ts';
import type { Check, Findings } from './check.ts';
import type { BoundClaim, KubernetesBench } from './kubernetes-bench.ts';
import { settled, some } from './leak-checks.ts';
import { CheckSkipped } from './outcome.ts';
import { segmentMistakes } from './topology-rules.ts';

const part = 'kubernetes';
const section = 'Kubernetes, node deployment';
const claimsAtOnce = 4;

export const nodeDeploymentChecks: readonly Check[] = [
  {
    id: 'node-identity',
    title: 'the driver on each node has a node id of its own, and a topology',
    section,
    part,
    run: identity,
  },
  {
    id: 'node-claim-late',
    title: 'a pod gets a volume from the driver on its node',
    section,
    part,
    needs: ['node-identity'],
    run: late,
  },
  {
    id: 'node-claim',
    title: 'each claim gets a volume on one node, which its PersistentVolume names',
    section,
    part,
    needs: ['node-identity'],
    run: immediate,
  },
  {
    id: 'node-delete',
    title: 'a volume is deleted by the driver on its node, and nothing is left on any',
    section,
    part,
    needs: ['node-claim-late', 'node-claim'],
    run: deletion,
  },
  {
    id: 'node-volume-id',
    title: 'no two nodes give the same volume_id',
    section: 'CreateVolume, volume_id',
    part,
    needs: ['node-identity'],
    run: volumeIds,
  },
];

async function identity(bench: Bench, findings: Findings): Promise<void> {
  const { nodes } = await bench.nodeDeployment();
  for (const { node, bench: own } of nodes) {
    const { nodeInfo, segments } = own.facts;
    if (!own.topology) {
      throw new CheckSkipped(
        'the driver has no VOLUME_ACCESSIBILITY_CONSTRAINTS: nothing says which node has a volume',
      );
    }
    if (!nodeInfo.ok) {
      if (nodeInfo.code === 'UNIMPLEMENTED')
        throw new CheckSkipped(`there is no node service at the socket of ${node}`);
      findings.fail(`on ${node}: ${own.described(nodeInfo)}`, 'NodeGetInfo');
    } else if (Object.keys(segments).length === 0) {
      findings.fail(`on ${node}, accessible_topology is empty`, 'NodeGetInfo');
    }
    for (const mistake of segmentMistakes(segments)) findings.fail(`on ${node}: ${mistake}`, 'NodeGetInfo');
  }
  const ids = new Set(nodes.map(({ bench: { facts } }) => facts.nodeId));
  if (ids.size < nodes.length) {
    findings.fail(`the drivers of ${names(nodes)} have the same node_id ${JSON.stringify([...ids][0])}`, 'NodeGetInfo');
  }
}

async function late(bench: Bench, findings: Findings): Promise<void> {
  const deployment = await bench.nodeDeployment();
  const kubernetes = await deployment.kubernetes();
  for (const node of deployment.nodes) {
    const name = kubernetes.claimOfPod(node.node);
    const bound = await kubernetes.bound(name);
    const makers = makersOf(deployment, bound.volume);
    if (makers.length !== 1 || makers[0] !== node) {
      findings.fail(`the volume for a pod on ${node.node} was created on ${names(makers)}`);
    }
    if (await judgeAffinity(deployment, kubernetes, { node, bound, findings })) {
      await kubernetes.scheduled(name, `the pod on ${node.node} with its volume is not scheduled`);
    }
    kubernetes.removePod(name);
    await kubernetes.remove(bound);
  }
}

async function immediate(bench: Bench, findings: Findings): Promise<void> {
  const deployment = await bench.nodeDeployment();
  const kubernetes = await deployment.kubernetes();
  const claims = Array.from({ length: claimsAtOnce }, () => kubernetes.claim());
  const all: BoundClaim[] = [];
  for (const name of claims) all.push(await kubernetes.bound(name));
  for (const bound of all) {
    const makers = makersOf(deployment, bound.volume);
    const [node] = makers;
    if (node === undefined || makers.length > 1) {
      findings.fail(`the volume of a claim was created on ${names(makers)}`);
    } else await judgeAffinity(deployment, kubernetes, { node, bound, findings });
  }
  for (const bound of all) await kubernetes.remove(bound);
}

async function deletion(bench: Bench, findings: Findings): Promise<void> {
  const deployment = await bench.nodeDeployment();
  const kubernetes = await deployment.kubernetes();
  for (const { node, calls } of deployment.nodes) {
    const name = kubernetes.claimOfPod(node);
    const bound = await kubernetes.bound(name);
    kubernetes.removePod(name);
    await kubernetes.remove(bound);
    if (!calls.deleted.has(bound.handle)) findings.fail(`the volume ${bound.handle} of ${node} was not deleted there`);
  }
  for (const { node, bench: own } of deployment.nodes) {
    const left = await settled(() => own.leftInList());
    if (left.length > 0) findings.fail(`all volumes were deleted, but ${node} still lists: ${some(left)}`);
  }
}

async function volumeIds(bench: Bench, findings: Findings): Promise<void> {
  const { nodes } = await bench.nodeDeployment();
  const ids = nodes.map(({ calls }) => new Set(calls.made.values()));
  if (ids.every((own) => own.size === 0)) throw new CheckSkipped('no volume was created');
  const [first = new Set(), ...others] = ids;
  const shared = [...first].filter((id) => others.some((own) => own.has(id)));
  if (shared.length > 0) findings.fail(`the drivers of ${names(nodes)} have given the same volume_id: ${some(shared)}`);
}

/** Reports a volume that its node cannot use, or that other nodes can use by its affinity. @returns whether its node can use it. */
async function judgeAffinity(
  deployment: DriverPerNode,
  kubernetes: KubernetesBench,
  { node, bound, findings }: { node: NodeUnderCheck; bound: BoundClaim; findings: Findings },
): Promise<boolean> {
  const { spec } = bound.volume;
  const where = JSON.stringify(spec.nodeAffinity);
  if (spec.nodeAffinity === undefined) {
    findings.fail(`the volume of ${node.node} has no node affinity, as accessible_topology of CreateVolume is empty`);
    return false;
  }
  const isUsable = kubernetes.admits(bound.volume, node.node);
  if (!isUsable) findings.fail(`the volume of ${node.node} cannot be used there: ${where}`);
  for (const other of deployment.nodes) {
    if (other === node || !kubernetes.admits(bound.volume, other.node)) continue;
    const answer = await other.bench.call('ValidateVolumeCapabilities', {
      volume_id: bound.handle,
      volume_capabilities: [other.bench.capability()],
      secrets: other.bench.options.secrets,
    });
    const text = `the node affinity of the volume of ${node.node} includes ${other.node}`;
    if (!answer.ok && answer.code === 'NOT_FOUND') findings.fail(`${text}, whose driver does not know it: ${where}`);
    else findings.warn(`${text}: its sidecar deletes the volume, too: ${where}`);
  }
  return isUsable;
}

function makersOf({ nodes }: DriverPerNode, { metadata }: Volume): NodeUnderCheck[] {
  return nodes.filter(({ calls }) => calls.made.has(metadata.name));
}

function names(nodes: readonly NodeUnderCheck[]): string {
  return nodes.length === 0 ? 'no node' : nodes.map(({ node }) => node).join(' and ');
}
