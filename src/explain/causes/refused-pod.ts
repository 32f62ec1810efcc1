/** A Pod of a bound claim that the scheduler cannot place. */
import { nameList } from '../../base/name-list.ts';
import { shellWord } from '../../base/shell-word.ts';
import { shortValue } from '../../base/short-value.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import type { ClusterNode, Pod } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import { barrierOf, fitsOne, isForNode, maxNamed, termsOf, termText, valuesOn } from '../node-labels.ts';
import type { HangingPod } from '../pod-facts-reader.ts';
import { needsPlace, refused, schedulingCure } from '../scheduler-words.ts';
import type { Hint } from './cause.ts';
import { holderHint } from './holding-pods.ts';

/** Its own claim is bound: what the nodes are refused for. */
export function refusedHint(pod: Pod, refusal: string, facts: ClaimFacts): Hint {
  const holder = refused.usedByOne.test(refusal) ? usedHint(pod, facts) : undefined;
  const place = needsPlace(refusal) ? placeHint(pod, refusal, facts) : undefined;
  if (place !== undefined) return place;
  const cure = schedulingCure(refusal, { pod, nodes: found(facts.nodes) });
  return holder ?? { text: `cannot be scheduled. The scheduler: ${refusal}`, cure };
}

/** Another Pod has the claim, of which only one may. */
function usedHint(pod: Pod, facts: ClaimFacts): Hint | undefined {
  const holder = found(facts.hanging?.holders)?.[0];
  if (holder === undefined) return undefined;
  const base = `cannot be scheduled: the claim has access mode ReadWriteOncePod, and Pod ${holder.metadata.name} on node ${holder.spec?.nodeName ?? ''} uses it`;
  return holderHint(base, { holder, pod }, facts);
}

/** Its volume can be used on some nodes only. Undefined where that of another claim is meant, or it could not be read. */
function placeHint(pod: Pod, refusal: string, { volume, nodes, hanging }: ClaimFacts): Hint | undefined {
  const ofClaim = found(volume);
  const terms = ofClaim === undefined ? [] : termsOf(ofClaim);
  if (ofClaim === undefined || terms.length === 0) return undefined;
  const labels = terms.map((term) => termText(term)).join(', or ');
  const text = `cannot be scheduled: the volume can only be used on nodes with ${labels}`;
  const said = `The scheduler: ${refusal}`;
  const all = found(nodes);
  if (all === undefined) return { text: `${text}. ${said}`, cure: schedulingCure(refusal, { pod, nodes: undefined }) };
  const keys = terms.flat().map((each) => each.key);
  const isOfNode = ofClaim.spec.local !== undefined || keys.some((key) => nodeKey.test(key));
  const fitting = all.filter(({ metadata }) => fitsOne(terms, metadata.labels));
  if (fitting.length === 0) {
    const [key = ''] = keys;
    return {
      text: `${text}, and there is none. Nodes have ${valuesOn(all, key) || `no label ${shortValue(key)}`}.`,
      cure: isOfNode
        ? `Add the node again under that name, with its disks. Only if these are lost is the data lost: then recreate the claim: kubectl get nodes -L ${shellWord(key) ?? 'KEY'}`
        : `Add a node there, or see whether one that is there has lost its label; a label alone does not bring storage to a node: kubectl get nodes -L ${shellWord(key) ?? 'KEY'}`,
    };
  }
  const apart = hanging === undefined ? undefined : apartHint({ all, fitting, terms }, hanging);
  if (apart !== undefined) return apart;
  const barriers = fitting.map((node) => barrierOf(node, pod));
  const names = fitting.map(({ metadata }, index) =>
    barriers[index] === undefined ? metadata.name : `${metadata.name} (${barriers[index].text})`,
  );
  const place = { labels, canGrow: !isOfNode };
  const isClosed = !barriers.includes(undefined);
  const cure = fitting.every((node) => !isForNode(pod, node))
    ? labelsCure
    : ((isClosed ? barriers[0]?.cure : undefined) ?? schedulingCure(refusal, { pod, nodes: fitting, place }));
  return { text: `${text}, which are ${nameList(names, maxNamed)}. ${said}`, cure };
}

/** Labels that only one node has, of Kubernetes and of drivers for storage in nodes. */
const nodeKey = /(?:hostname|node-?name|node-?id|\/node)$/i;

/** The volume was created before the Pod was known, or for another one. */
const labelsCure =
  'None of these nodes has the labels that nodeSelector or affinity of the Pod ask for: change the Pod, or add a node with these labels where the volume can be used. If the data is not needed, recreate the claim with a class that has volumeBindingMode WaitForFirstConsumer, whose volumes are created where the Pod goes';

/** No node can use both the volume and that of another claim of the Pod. */
function apartHint(
  { all, fitting, terms }: { all: readonly ClusterNode[]; fitting: readonly ClusterNode[]; terms: Terms },
  { sibling, siblingVolume }: HangingPod,
): Hint | undefined {
  const other = found(siblingVolume);
  const others = other === undefined ? [] : termsOf(other);
  if (sibling === undefined || others.length === 0) return undefined;
  if (fitting.some(({ metadata }) => fitsOne(others, metadata.labels))) return undefined;
  const where = (each: Terms): string => {
    const names = all.filter(({ metadata }) => fitsOne(each, metadata.labels)).map(({ metadata }) => metadata.name);
    const text = each.map((term) => termText(term)).join(', or ');
    return names.length === 0 ? `${text}, of which there is none` : `${text}, which are ${nameList(names, maxNamed)}`;
  };
  return {
    text: `cannot be scheduled: no node can use both its volumes. That of this claim is for nodes with ${where(terms)}; that of claim ${sibling.metadata.name} is for nodes with ${where(others)}.`,
    cure: 'Give the Pod claims whose volumes are in one place: recreate the one without needed data, with a class that has volumeBindingMode WaitForFirstConsumer',
  };
}

type Terms = ReturnType<typeof termsOf>;
