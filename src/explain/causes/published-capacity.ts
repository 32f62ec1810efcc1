/** The storage capacity that a provisioner publishes: the scheduler compares it with what a claim requests. */
import { nameList } from '../../base/name-list.ts';
import { quantityBytes } from '../../base/quantity.ts';
import { shortValue } from '../../base/short-value.ts';
import type { NodeSelectorRequirement } from '../../provision/objects.ts';
import type { ClaimFacts } from '../claim-facts-reader.ts';
import { claimsOf, type CsiDriver, type Pod, type StorageCapacity } from '../cluster-objects.ts';
import { found } from '../cluster-reader.ts';
import type { Holding } from '../explanation.ts';
import { fitsOne, isReady, maxNamed, termText } from '../node-labels.ts';

/** Where the scheduler refuses a Pod for lack of storage. */
export const noRoomCure = 'Free storage on a node that fits the Pod, request less, or use another class';

/** A provisioner publishes the capacity for a new class, or of a new driver, within this time, in milliseconds. */
const publishedWithinMs = 2 * 60_000;

/**
 * Why the scheduler finds no room for the claim.
 *
 * @returns undefined where it is not the capacity for this claim: that of another claim of the Pod may be short.
 */
export function roomFinding(facts: ClaimFacts, pod: Pod, refusal: string): Holding | undefined {
  const { capacity, claim, nowMs } = facts;
  const ofClass = found(facts.storageClass);
  const base = `Pod ${pod.metadata.name} uses the claim and cannot be scheduled.`;
  const held = { state: 'stuck', cause: 'no-capacity' } as const;
  const asTheSchedulerSays: Holding = { ...held, message: `${base} The scheduler: ${refusal}`, cure: noRoomCure };
  if (capacity === undefined || ofClass === undefined) return asTheSchedulerSays;
  if (capacity.driver.kind === 'unreadable')
    return { ...asTheSchedulerSays, message: `${asTheSchedulerSays.message} ${unseen(capacity.driver.why)}` };
  const driver = found(capacity.driver);
  if (driver?.spec?.storageCapacity !== true)
    return isAlone(pod) ? { ...asTheSchedulerSays, ...noLongerCompared(driver) } : undefined;
  if (capacity.published?.kind === 'unreadable')
    return { ...asTheSchedulerSays, message: `${asTheSchedulerSays.message} ${unseen(capacity.published.why)}` };
  const published = found(capacity.published) ?? [];
  const { name: driverName } = driver.metadata;
  const compares = `CSIDriver ${driverName} has storageCapacity: true, so that the scheduler compares the published capacity`;
  if (published.length === 0) {
    const newestMs = Math.max(
      ...[driver, ofClass, claim].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') || 0),
    );
    const isLate = nowMs - newestMs > publishedWithinMs;
    const cure = `Start the provisioner with --enable-capacity, and see in its log why it publishes none. Or let the scheduler not compare: kubectl patch csidriver ${driverName} --type=merge -p '{"spec":{"storageCapacity":false}}'`;
    return {
      state: isLate ? 'stuck' : 'waiting',
      cause: 'capacity-not-published',
      message: `${base} ${compares}, and there is no CSIStorageCapacity for StorageClass ${ofClass.metadata.name}: nothing counts as room.`,
      cure: isLate
        ? cure
        : 'Nothing: a provisioner with --enable-capacity publishes it for a new class or driver within two minutes',
    };
  }
  const nodes = found(facts.nodes);
  const inUse =
    nodes === undefined
      ? published
      : published.filter((each) => nodes.some(({ metadata }) => isFor(each, metadata.labels)));
  if (inUse.length === 0) {
    return {
      ...held,
      message: `${base} ${compares}. For StorageClass ${ofClass.metadata.name} it is published for segments in which no node is: ${segmentsText(published)}.`,
      cure: `Check that the driver's node plugin runs, and that nodes have the labels of its topology: kubectl get csinodes,nodes --show-labels`,
    };
  }
  const requested = claim.spec.resources?.requests?.['storage'] ?? 0;
  const roomy = inUse.filter((each) => quantityBytes(limitOf(each) ?? 0) >= quantityBytes(requested));
  if (roomy.length === 0) return tooLittle(base, ofClass.metadata.name, inUse, requested);
  const usable =
    nodes?.filter((node) => isReady(node) && roomy.some((each) => isFor(each, node.metadata.labels))) ?? [];
  if (!isAlone(pod)) return undefined;
  if (usable.length === 0) return asTheSchedulerSays;
  return {
    ...held,
    cause: 'pod-unschedulable',
    message: `${base} There is room for the claim in ${segmentsText(roomy)}, where the Pod cannot run for other reasons. The scheduler: ${refusal}`,
    cure: `Let the Pod run on a node with room, such as ${usable[0]?.metadata.name ?? ''}: do what the scheduler says of the nodes that have it`,
  };
}

/** Whether the Pod has no other claim, whose storage may be short instead. */
function isAlone(pod: Pod): boolean {
  return claimsOf(pod).length === 1;
}

/** The scheduler has not tried again since it no longer compares: that of a driver is not among the changes that it waits for. */
function noLongerCompared(driver: CsiDriver | undefined): Partial<Holding> {
  if (driver === undefined) return {};
  return {
    state: 'waiting',
    cure: `Nothing: CSIDriver ${driver.metadata.name} no longer has storageCapacity: true, and the scheduler tries again within five minutes. Or recreate the Pod`,
  };
}

function tooLittle(
  base: string,
  className: string,
  published: readonly StorageCapacity[],
  requested: string | number,
): Holding {
  const most = published.toSorted((a, b) => Number(quantityBytes(limitOf(b) ?? 0) - quantityBytes(limitOf(a) ?? 0)))[0];
  const isLimited =
    most?.maximumVolumeSize !== undefined && quantityBytes(most.capacity ?? 0) >= quantityBytes(requested);
  const where = most === undefined ? '' : segmentsText([most]);
  return {
    state: 'stuck',
    cause: 'no-capacity',
    message: `${base} The claim requests ${requested}, and the most that is published for a volume of StorageClass ${className} is ${most === undefined ? '0' : (limitOf(most) ?? '0')} (${where}).`,
    cure: isLimited ? 'Request at most that: the driver creates no larger volume. Or use another class' : noRoomCure,
  };
}

/** What the scheduler compares with the request. */
function limitOf({ capacity, maximumVolumeSize }: StorageCapacity): string | number | undefined {
  return maximumVolumeSize ?? capacity;
}

/** Whether the published capacity can be used on a node with these labels. */
function isFor(published: StorageCapacity, labels: Record<string, string> = {}): boolean {
  const term = termOf(published);
  return term !== undefined && fitsOne([term], labels);
}

/** Undefined: no node has access. */
function termOf({ nodeTopology }: StorageCapacity): NodeSelectorRequirement[] | undefined {
  if (nodeTopology === undefined || nodeTopology === null) return undefined;
  const { matchLabels, matchExpressions } = nodeTopology;
  return [
    ...Object.entries(matchLabels ?? {}).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
    ...(matchExpressions ?? []),
  ];
}

function segmentsText(published: readonly StorageCapacity[]): string {
  const texts = published.map((each) => {
    const term = termOf(each);
    if (term === undefined) return 'no node';
    return term.length === 0 ? 'all nodes' : termText(term);
  });
  return shortValue(nameList([...new Set(texts)].sort(), maxNamed));
}

function unseen(why: string): string {
  return `Which capacity is published cannot be seen: ${why}.`;
}
