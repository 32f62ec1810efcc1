/** No node with the driver matches the class's `allowedTopologies`, or none reports a topology. */
import { nameList } from '../../base/name-list.ts';
import { shortValue } from '../../base/short-value.ts';
import { selectedNode } from '../../provision/claim/claim-fields.ts';
import type { StorageClass } from '../../provision/objects.ts';
import { attempts } from '../attempts.ts';
import { type ClaimFacts, provisionerOf } from '../claim-facts-reader.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { defineCause } from './cause.ts';

const cure =
  "Check that the driver's node plugin runs on the nodes, that CSINode objects name its topology keys, and that the class's allowedTopologies fit them";

export const noTopology = defineCause({
  name: 'no-topology',
  failures: [{ pattern: /^error generating accessibility requirements: /, cure }],
  waits: [{ pattern: /^Waiting for a node that StorageClass /, state: 'stuck', cure }],
});

/** Names in a message: more are counted. */
const maxNamed = 8;

type Labels = Readonly<Record<string, string>>;
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
  if (alone === undefined) return `no node has all of ${term.map(text).join(', ')}`;
  const { key } = alone;
  const present = [...new Set(nodeLabels.flatMap((labels) => labels[key] ?? []))].sort();
  if (present.length === 0) {
    return `no node has the label ${shortValue(key)}, and the driver reports ${keys.size === 0 ? 'no topology' : named([...keys].sort())}`;
  }
  return `${text(alone)} is on no node; nodes have ${named(present)}`;
}

function fits({ key, values }: Requirement, labels: Labels): boolean {
  const value = labels[key];
  return value !== undefined && values.includes(value);
}

function text({ key, values }: Requirement): string {
  return `${shortValue(key)} ${values.map((value) => shortValue(value)).join(' or ')}`;
}

function named(names: readonly string[]): string {
  return nameList(
    names.map((name) => shortValue(name)),
    maxNamed,
  );
}
