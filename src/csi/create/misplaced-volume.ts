import { objectKey } from '../../kube/kube-object.ts';
import { shortValue } from '../../base/short-value.ts';
import { claimReference, selectedNode } from '../../provision/claim-fields.ts';
import { misplacedReason } from '../../provision/event-reasons.ts';
import type { NodeSelectorTerm, PersistentVolume } from '../../provision/objects.ts';
import type { VolumePlan } from './volume-plan.ts';
import type { CsiProvisionerOptions } from '../csi-provisioner-options.ts';
import { selectsNode } from '../node-selector.ts';
import { labelsText } from '../topology/topology-term.ts';

/**
 * Reports a volume that the selected node cannot use, by the labels of the node: its Pod cannot start there. The volume is kept, since
 * a driver may return another topology than the requested ones (CSI spec, `CreateVolumeResponse`).
 *
 * @param volume - in CSI form, whose labels are those that the scheduler compares.
 */
export function reportMisplaced(
  { topology, claims, recorder, logger }: CsiProvisionerOptions,
  plan: Pick<VolumePlan, 'claim'>,
  volume: PersistentVolume,
): void {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const claim = claims.get(objectKey({ metadata: plan.claim }));
  if (terms.length === 0 || claim?.metadata.uid !== plan.claim.uid) return;
  const node = selectedNode(claim);
  const labels = node === '' ? undefined : topology?.labelsOf?.(node);
  if (labels === undefined || selectsNode(terms, labels)) return; // no node was selected, or it is gone
  const keys = new Set(terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)));
  const having = labelsText(Object.fromEntries(Object.entries(labels).filter(([key]) => keys.has(key))));
  const places = terms.map(termText).join(' or ');
  logger.warn(
    { claim: objectKey(claim), volume: volume.metadata.name, node, accessibleFrom: places, nodeLabels: having },
    'The selected node cannot use the volume that the driver created',
  );
  const message =
    `The driver created volume ${volume.metadata.name} where the selected node ${shortValue(node)} cannot use it: it can be used on nodes ` +
    `with ${shortValue(places)}, and this node has ${shortValue(having)}. If the class has allowedTopologies, name all topology keys of the driver ` +
    'in each term, or set --strict-topology; then recreate the claim';
  recorder.event(claimReference(claim), 'Warning', misplacedReason, message, { once: true, logged: true });
}

function termText({ matchExpressions = [] }: NodeSelectorTerm): string {
  return labelsText(Object.fromEntries(matchExpressions.map(({ key, values = [] }) => [key, values.join('|')])));
}
