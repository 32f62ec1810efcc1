/** Where the volume is to be: the node that was chosen for it, where the driver is registered, and what the class allows. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import { selectedNode } from '../../provision/claim-fields.ts';
import type { StorageClass } from '../../provision/objects.ts';
import { attempts } from '../attempts.ts';
import { type ClaimFacts, lacksTopology, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { type Labels, maxNamed } from '../node-labels.ts';
import { signOfLifeMs } from '../provisioner-facts.ts';
import { failuresText } from '../provisioning-events.ts';
import { quotedError } from '../texts.ts';
import { defineCause } from './cause.ts';

/** The node that was chosen for the claim does not exist. */
export const selectedNodeGone = defineCause({
  name: 'selected-node-gone',
  failures: [
    {
      pattern: /^failed to get selected (CSINode|Node) /,
      cure: 'Usually the scheduler chooses another node at once. If it chooses this one again, check that the driver runs there',
    },
  ],
});

export function checkNode(facts: ClaimFacts): Finding | undefined {
  const { claim, node, events, nowMs } = facts;
  const name = selectedNode(claim);
  if (name === '' || node === undefined) return undefined;
  if (node.kind === 'unreadable')
    return { state: 'unknown', detail: `node ${shortValue(name)} was chosen; ${node.why}` };
  if (node.kind === 'found') return { state: 'ok', detail: `${shortValue(name)} was chosen and exists` };
  const gone = `Node ${shortValue(name)}, which was chosen for the claim, does not exist`;
  if (events?.kind === 'unreadable') return { state: 'unknown', detail: `${gone}; ${events.why}` };
  const { lastMs } = attempts(facts);
  // only drivers with topology need the node, and the provisioner's events say whether it is missed
  if (lastMs !== undefined && nowMs - lastMs < signOfLifeMs) return { state: 'ok', detail: gone };
  return {
    state: 'stuck',
    cause: 'selected-node-gone',
    message: `${gone}.`,
    cure: 'Check that the provisioner runs: it provisions the volume all the same, or asks the scheduler for another node. If neither happens, recreate the claim and its Pod',
  };
}

/** The provisioner found no topology: whether the driver is registered where it looked. */
export function checkRegistered(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, csiNodes, nowMs } = facts;
  const { failed, started } = attempts(facts);
  if (failed === undefined || !lacksTopology(failed) || csiNodes === undefined) return undefined;
  if (started !== undefined && started.atMs > failed.atMs) return undefined;
  if (csiNodes.kind === 'unreadable') return undefined; // the error itself says what to look at
  const node = selectedNode(claim);
  const driver = provisionerOf(claim, found(storageClass));
  const all = found(csiNodes) ?? [];
  const own = all.flatMap(({ spec }) => spec?.drivers?.find(({ name }) => name === driver) ?? []);
  if (own.some(({ topologyKeys }) => (topologyKeys ?? []).length > 0)) return undefined;
  const where =
    node === ''
      ? 'is registered on no node'
      : `is not registered on node ${shortValue(node)}, which was chosen for the claim`;
  const others = all.flatMap(({ spec }) => spec?.drivers?.map(({ name }) => name) ?? []);
  const instead =
    node === '' ? '' : `: its CSINode ${others.length === 0 ? 'lists no driver' : `lists ${named(others)}`}`;
  const error = `Provisioning ${failuresText(failed, nowMs)}. Last error: ${quotedError(failed.text)}`;
  if (own.length > 0) {
    return {
      ...{ state: 'stuck', cause: 'no-topology' },
      message: `Driver ${shortValue(driver)} is registered ${node === '' ? '' : `on node ${shortValue(node)} `}without topology keys. ${error}`,
      cure: "Have the driver's node plugin report a topology (NodeGetInfo): see its log, and whether the node has the labels that it reads. A driver without topology needs --feature-gates=Topology=false",
    };
  }
  const start = "Let the driver's node plugin, usually a DaemonSet, run";
  return {
    ...{ state: 'stuck', cause: 'no-topology' },
    message: `Driver ${shortValue(driver)} ${where}${instead}. ${error}`,
    cure:
      node === ''
        ? `${start}, see its log, and check on which nodes it has registered: kubectl get csinodes`
        : `${start} on that node (see its nodeSelector and tolerations), or give the Pod a nodeSelector for nodes that have the driver; these list it: kubectl get csinodes`,
  };
}

const topologyCure =
  "Check that the driver's node plugin runs on the nodes, that CSINode objects name its topology keys, and that the class's allowedTopologies fit them";

/** No node with the driver matches the class's `allowedTopologies`, or none reports a topology. */
export const noTopology = defineCause({
  name: 'no-topology',
  failures: [{ pattern: /^error generating accessibility requirements: /, cure: topologyCure }],
  waits: [{ pattern: /^Waiting for a node that StorageClass /, state: 'stuck', cure: topologyCure }],
});

type Requirement = NonNullable<NonNullable<StorageClass['allowedTopologies']>[number]['matchLabelExpressions']>[number];

/**
 * Compares `allowedTopologies` of the class with the nodes on which the driver is registered. A node that was selected has been
 * compared by the scheduler.
 */
export function checkAllowedTopologies(facts: ClaimFacts): Finding | undefined {
  const { claim, storageClass, nodes, csiNodes } = facts;
  const ofClass = found(storageClass);
  const terms = ofClass?.allowedTopologies ?? [];
  if (terms.length === 0 || selectedNode(claim) !== '' || attempts(facts).succeeded !== undefined) return undefined;
  if (csiNodes?.kind === 'unreadable') return { state: 'unknown', detail: csiNodes.why };
  if (nodes?.kind === 'unreadable') return { state: 'unknown', detail: nodes.why };
  const driver = provisionerOf(claim, ofClass);
  const registered = (found(csiNodes) ?? []).flatMap(({ metadata, spec }) => {
    const own = spec?.drivers?.find(({ name }) => name === driver);
    return own === undefined ? [] : [{ node: metadata.name, keys: own.topologyKeys ?? [] }];
  });
  const labelsOf = new Map((found(nodes) ?? []).map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
  const nodeLabels = registered.flatMap(({ node }): Labels[] => {
    const labels = labelsOf.get(node);
    return labels === undefined ? [] : [labels];
  });
  if (nodeLabels.length === 0) return undefined; // no node plugin, or no driver: another check reports that
  const keys = new Set(registered.flatMap((each) => each.keys));
  const misfits = terms.map(({ matchLabelExpressions }) => misfit(matchLabelExpressions ?? [], nodeLabels, keys));
  if (misfits.includes(undefined)) return undefined;
  return {
    state: 'stuck',
    cause: 'no-topology',
    message: `StorageClass ${ofClass?.metadata.name ?? ''} allows volumes where no node of the driver is: ${misfits.join('; ')}.`,
    cure: 'Correct allowedTopologies: delete the class and create it again, and recreate the claim. Or add nodes there',
  };
}

/** Why no node matches a term; undefined: one does. */
function misfit(
  term: readonly Requirement[],
  nodeLabels: readonly Labels[],
  keys: ReadonlySet<string>,
): string | undefined {
  if (nodeLabels.some((labels) => term.every((each) => fits(each, labels)))) return undefined;
  const alone = term.find((each) => !nodeLabels.some((labels) => fits(each, labels)));
  if (alone === undefined) return `no node has all of ${term.map(requirementText).join(', ')}`;
  const { key } = alone;
  const present = [...new Set(nodeLabels.flatMap((labels) => labels[key] ?? []))].sort();
  if (present.length === 0) {
    return `no node has the label ${shortValue(key)}, and the driver reports ${keys.size === 0 ? 'no topology' : named([...keys].sort())}`;
  }
  return `${requirementText(alone)} is on no node; nodes have ${named(present)}`;
}

function fits({ key, values }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  return value !== undefined && values.includes(value);
}

function requirementText({ key, values }: Requirement): string {
  return `${shortValue(key)} ${values.map((value) => shortValue(value)).join(' or ')}`;
}

function named(names: readonly string[]): string {
  return nameList(
    names.map((name) => shortValue(name)),
    maxNamed,
  );
}
