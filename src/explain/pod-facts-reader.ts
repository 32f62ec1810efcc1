/** Reads what the Pods that use a claim need to be explained: as little as their state asks for. */
import { createHash } from 'node:crypto';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  provisionedByKey,
  type StorageClass,
} from '../provision/objects.ts';
import {
  type Attachment,
  attachments,
  claimsOf,
  type ClusterEvent,
  type ClusterNode,
  type CsiDriver,
  csiDrivers,
  events,
  holdsClaim,
  isBlockedBy,
  nodes,
  type Pod,
  pods,
  type StorageCapacity,
  storageCapacities,
  usesClaim,
  waitingOf,
} from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import { recordedOf } from './provisioning-events.ts';
import { readAttachments } from './volume-facts-reader.ts';
import { isAboutVolumes, isForOne, needsNodes, needsPlace, refusalOf, refused, refusedPod } from './scheduler-words.ts';

/** What is read of the Pods that use a claim; what their state does not require is absent. */
export interface PodFacts {
  /** Those that have not started; of a claim that is being deleted, those with a node. */
  pods?: Reading<Pod[]> | undefined;
  /** The nodes of Pods that are being deleted, and that of one that does not start, by name. */
  podNodes?: ReadonlyMap<string, Reading<ClusterNode>> | undefined;
  /** The other claims of a Pod that the scheduler refuses for its volumes. */
  siblings?: readonly { name: string; reading: Reading<PersistentVolumeClaim> }[] | undefined;
  /** Where the scheduler finds no room. */
  capacity?: CapacityFacts | undefined;
  /** Of a class with `allowedTopologies` while no node is selected, and where the scheduler finds no room, or `needsNodes`. */
  nodes?: Reading<ClusterNode[]> | undefined;
  /** What the scheduler has recorded about a Pod that cannot be read itself, or kubelets about one that is to end. */
  podEvents?: { pod: string; events: Reading<ClusterEvent[]> } | undefined;
  /** Of a bound claim: a Pod that does not start. */
  hanging?: HangingPod | undefined;
}

export interface CapacityFacts {
  driver: Reading<CsiDriver>;
  /** For the class; read only for a driver whose capacity the scheduler compares. */
  published?: Reading<StorageCapacity[]> | undefined;
}

export interface HangingPod {
  pod: Pod;
  /** Another claim of the Pod, and its volume: the nodes of one may exclude those of the other. */
  sibling?: PersistentVolumeClaim | undefined;
  siblingVolume?: Reading<PersistentVolume> | undefined;
  /** Other Pods that have its volume, where that is in its way. */
  holders?: Reading<Pod[]> | undefined;
  /** About the Pod; read of one that has a node. */
  events?: Reading<ClusterEvent[]> | undefined;
  /** Of the volume to the node of the Pod, where no event says anything. */
  attachment?: Reading<Attachment> | undefined;
  /** To another node, where no Pod is known to use the volume, and that node. */
  elsewhere?: { attachment: Attachment; node: Reading<ClusterNode> } | undefined;
}

/** Claims of a Pod that are read; one has more only rarely. */
const maxSiblings = 4;
/** Nodes of Pods that are being deleted. */
const maxPodNodes = 3;

/** Its slowest request: the API server does not cache events, and reads all of the namespace to find these. */
export function readEvents(
  { metadata: { namespace = '', uid = '' } }: PersistentVolumeClaim | Pod,
  reader: ClusterReader,
): Promise<Reading<ClusterEvent[]>> {
  return reader.list<ClusterEvent>(events, { namespace, fieldSelector: `involvedObject.uid=${uid}` });
}

/** Names, labels, and whether Pods may run there. */
export function readNodes(reader: ClusterReader): Promise<Reading<ClusterNode[]>> {
  return reader.pick<ClusterNode>(nodes, ({ metadata: { name, labels }, spec, status }) => ({
    metadata: { name, ...(labels && { labels }) },
    spec: { unschedulable: spec?.unschedulable ?? false, taints: spec?.taints ?? [] },
    status: { conditions: status?.conditions?.filter(({ type }) => type === 'Ready') ?? [] },
  }));
}

/** The API server does not select Pods by their volumes, and a namespace may have very many. */
function readPods(
  { metadata: { namespace = '', name } }: PersistentVolumeClaim,
  fieldSelector: string,
  reader: ClusterReader,
): Promise<Reading<Pod[]>> {
  return reader.select<Pod>(pods, (pod) => usesClaim(pod, name), { namespace, fieldSelector });
}

/** Of a claim that waits for a Pod: those that have not started, and if there is one, the events, which show earlier nodes. */
export async function readConsumers(
  claim: PersistentVolumeClaim,
  ofClass: StorageClass | undefined,
  reader: ClusterReader,
): Promise<PodFacts & { events?: Reading<ClusterEvent[]> }> {
  const waiting = await readPods(claim, 'status.phase=Pending', reader);
  if (waiting.kind === 'unreadable') return { pods: waiting, ...(await readSchedulerWords(claim, reader)) };
  const using = found(waiting) ?? [];
  if (using.length === 0) return { pods: waiting };
  const pod = refusedPod(using.filter((each) => !isBlockedBy(each, claim)));
  const refusal = (pod && refusalOf(pod)) ?? '';
  const hasNodes = (ofClass?.allowedTopologies ?? []).length > 0; // read already
  const [about, room, siblings, all] = await Promise.all([
    readEvents(claim, reader),
    refused.noRoom.test(refusal) && ofClass ? readRoom(ofClass, reader) : {},
    pod && isAboutVolumes(refusal) ? readSiblings(pod, claim, maxSiblings, reader) : undefined,
    needsNodes(refusal) && !hasNodes ? readNodes(reader) : undefined,
  ]);
  return { pods: waiting, events: about, ...(all && { nodes: all }), ...room, siblings };
}

/** What the scheduler compares with the request. */
async function readRoom(ofClass: StorageClass, reader: ClusterReader): Promise<Pick<PodFacts, 'capacity' | 'nodes'>> {
  const driver = await reader.get<CsiDriver>(csiDrivers, { name: ofClass.provisioner });
  if (found(driver)?.spec?.storageCapacity !== true) return { capacity: { driver } };
  const hasNodes = (ofClass.allowedTopologies ?? []).length > 0; // read already
  const [published, all] = await Promise.all([
    reader.select<StorageCapacity>(storageCapacities, (each) => each.storageClassName === ofClass.metadata.name),
    hasNodes ? undefined : readNodes(reader),
  ]);
  return { capacity: { driver, published }, ...(all && { nodes: all }) };
}

async function readSiblings(
  pod: Pod,
  claim: PersistentVolumeClaim,
  max: number,
  reader: ClusterReader,
): Promise<PodFacts['siblings']> {
  const { namespace = '' } = claim.metadata;
  const names = claimsOf(pod)
    .map(({ name }) => name)
    .filter((name) => name !== claim.metadata.name);
  return await Promise.all(
    names.slice(0, max).map(async (name) => ({
      name,
      reading: await reader.get<PersistentVolumeClaim>(persistentVolumeClaims, { namespace, name }),
    })),
  );
}

/** Who may not read Pods still sees for which of them kube-controller-manager waits, and what the scheduler says of it. */
async function readSchedulerWords(
  claim: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<PodFacts & { events?: Reading<ClusterEvent[]> }> {
  const about = await readEvents(claim, reader);
  const pod = awaitedPod(found(about) ?? []);
  if (pod === undefined) return { events: about };
  const { namespace = '' } = claim.metadata;
  const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${pod},reason=FailedScheduling`;
  return {
    events: about,
    podEvents: { pod, events: await reader.list<ClusterEvent>(events, { namespace, fieldSelector }) },
  };
}

/** The first Pod for which kube-controller-manager waits, in its event about a claim; undefined where it says nothing, or that there is none. */
export function awaitedPod(about: readonly ClusterEvent[]): string | undefined {
  const waits = recordedOf(
    about.filter(({ reason = '' }) => reason === 'WaitForPodScheduled' || reason === 'WaitForFirstConsumer'),
  );
  return /^waiting for pods? ([^\s,]+)/.exec(waits?.text ?? '')?.[1];
}

/** Of a claim that is being deleted: the Pods for which it is kept, and the nodes of those that are being deleted themselves. */
export async function readHolders(claim: PersistentVolumeClaim, reader: ClusterReader): Promise<PodFacts> {
  const scheduled = await readPods(claim, 'spec.nodeName!=', reader);
  const holders = (found(scheduled) ?? []).filter((pod) => holdsClaim(pod, claim));
  const isGoing = holders.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return { pods: scheduled, ...(isGoing && (await readEnd(holders, reader))) };
}

/** The nodes of Pods that are being deleted, and the events about the first. */
async function readEnd(
  going: readonly Pod[],
  reader: ClusterReader,
): Promise<Pick<PodFacts, 'podNodes' | 'podEvents'>> {
  const [first] = going;
  const [podNodes, about] = await Promise.all([
    readNodesOf(going, reader),
    first === undefined ? undefined : readEvents(first, reader),
  ]);
  return { podNodes, podEvents: first && about && { pod: first.metadata.name, events: about } };
}

async function readNodesOf(some: readonly Pod[], reader: ClusterReader): Promise<PodFacts['podNodes']> {
  const names = [...new Set(some.flatMap(({ spec }) => spec?.nodeName ?? []))].slice(0, maxPodNodes);
  return new Map(
    await Promise.all(names.map(async (name) => [name, await reader.get<ClusterNode>(nodes, { name })] as const)),
  );
}

/**
 * Of a bound claim: a Pod that uses it and does not start, or does not end, with what may be the reason. At most five requests, and one
 * for each further 2,000 Pods of the namespace and VolumeAttachments of the cluster.
 */
export async function readHangingPod(
  claim: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<PodFacts & { volume?: Reading<PersistentVolume> }> {
  const all = await readPods(claim, 'status.phase!=Succeeded,status.phase!=Failed', reader);
  const isGoing = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
  const using = (found(all) ?? []).filter((pod) => !isGoing(pod) && pod.status?.phase === 'Pending');
  const waiting: Reading<Pod[]> = all.kind === 'found' ? { kind: 'found', value: using } : all;
  const pod = using.find(({ spec }) => (spec?.nodeName ?? '') === '') ?? using[0];
  const crashing = found(all)?.find((each) => !isGoing(each) && waitingOf(each).length > 0);
  if (pod === undefined && crashing !== undefined)
    return { pods: waiting, hanging: { pod: crashing }, volume: await readVolume(claim, reader) };
  if (pod === undefined) {
    // such as that of a StatefulSet, which creates no other one before it has ended
    const going = found(all)?.find((each) => isGoing(each) && (each.spec?.nodeName ?? '') !== '');
    if (going === undefined) return { pods: waiting };
    return { pods: waiting, hanging: { pod: going }, ...(await readEnd([going], reader)) };
  }
  const isPlaced = (pod.spec?.nodeName ?? '') !== '';
  const further = isPlaced ? readPlaced(pod, claim, reader) : readRefused(pod, claim, reader);
  return { pods: waiting, ...(await further) };
}

type Further = PodFacts & { volume?: Reading<PersistentVolume> };

async function readRefused(pod: Pod, claim: PersistentVolumeClaim, reader: ClusterReader): Promise<Further> {
  const refusal = refusalOf(pod) ?? '';
  if (refused.usedByOne.test(refusal) && isForOne(claim)) {
    const holders = await readHaving(claim, reader);
    return { hanging: { pod, holders }, podNodes: await readGoing(holders, reader) };
  }
  if (refused.elsewhere.test(refusal)) {
    const [volume, all, siblings] = await Promise.all([
      readVolume(claim, reader),
      readNodes(reader),
      readSiblings(pod, claim, 1, reader),
    ]);
    const sibling = found(siblings?.[0]?.reading);
    const siblingVolume = sibling?.status?.phase === 'Bound' ? await readVolume(sibling, reader) : undefined;
    return { hanging: { pod, sibling, siblingVolume }, volume, nodes: all };
  }
  if (needsPlace(refusal) && !isAboutVolumes(refusal)) {
    const [volume, all] = await Promise.all([readVolume(claim, reader), readNodes(reader)]);
    return { hanging: { pod }, volume, nodes: all };
  }
  return {
    hanging: { pod },
    nodes: needsNodes(refusal) ? await readNodes(reader) : undefined,
    // the scheduler reports nothing while it waits for the volume of another claim
    siblings:
      refusal === '' || isAboutVolumes(refusal) ? await readSiblings(pod, claim, maxSiblings, reader) : undefined,
  };
}

async function readPlaced(pod: Pod, claim: PersistentVolumeClaim, reader: ClusterReader): Promise<Further> {
  const about = await readEvents(pod, reader);
  const blocked = recordedOf((found(about) ?? []).filter(({ reason }) => reason === 'FailedAttachVolume'));
  const holder = /already used by pod\(s\) ([^\s,]+)/.exec(blocked?.text ?? '')?.[1];
  if (holder !== undefined) {
    const { namespace = '' } = claim.metadata;
    const reading = await reader.get<Pod>(pods, { namespace, name: holder });
    const holders: Reading<Pod[]> = reading.kind === 'found' ? { kind: 'found', value: [reading.value] } : reading;
    return { hanging: { pod, events: about, holders }, podNodes: await readGoing(holders, reader) };
  }
  if (blocked?.text.startsWith(multiAttach) === true) {
    const [elsewhere, volume] = await Promise.all([readElsewhere(pod, claim, reader), readVolume(claim, reader)]);
    return { hanging: { pod, events: about, elsewhere }, volume };
  }
  // a kubelet that records that it waits is healthy, so the node is not read
  const beside = mountedBeside(pod, claim, found(about) ?? []);
  const [volume, podNodes, other] = await Promise.all([
    readVolume(claim, reader),
    beside === undefined ? readNodesOf([pod], reader) : undefined,
    beside && reader.get<PersistentVolumeClaim>(persistentVolumeClaims, beside),
  ]);
  const { driver, volumeHandle } = found(volume)?.spec.csi ?? {};
  const isDetaching = blocked?.text.includes(detaching) === true;
  if ((blocked !== undefined && !isDetaching) || driver === undefined || volumeHandle === undefined)
    return { hanging: { pod, events: about }, volume, podNodes };
  const sibling = found(other);
  if (sibling !== undefined && !isProvisioned(found(volume)))
    return { hanging: { pod, events: about, sibling, siblingVolume: await readVolume(sibling, reader) }, volume };
  const name = attachmentName({ driver, volumeHandle, node: pod.spec?.nodeName ?? '' });
  const attachment = await reader.get<Attachment>(attachments, { name });
  return { hanging: { pod, events: about, attachment }, volume, podNodes };
}

/** A claim of the Pod whose volume is mounted, while the kubelet waits for that of this one. */
function mountedBeside(
  pod: Pod,
  { metadata: { namespace = '', name } }: PersistentVolumeClaim,
  about: readonly ClusterEvent[],
): { namespace: string; name: string } | undefined {
  const missing = unmountedIn(recordedOf(about.filter(({ reason }) => reason === 'FailedMount'))?.text ?? '');
  const all = claimsOf(pod);
  if (!all.some((each) => each.name === name && missing.includes(each.volume))) return undefined;
  const other = all.find((each) => each.name !== name && !missing.includes(each.volume));
  return other && { namespace, name: other.name };
}

/** The volumes that a kubelet waits for, by their names in the Pod. */
export function unmountedIn(text: string): string[] {
  const [, names = ''] = /^Unable to attach or mount volumes: unmounted volumes=\[([^\]]*)\]/.exec(text) ?? [];
  return names.split(/[ ,]+/).filter((each) => each !== '');
}

/** Whether a provisioner made the volume, so that its handle is the driver's own. */
function isProvisioned(volume: PersistentVolume | undefined): boolean {
  return volume?.metadata.annotations?.[provisionedByKey] !== undefined;
}

/** How kube-controller-manager and kubelets say that an earlier attachment of the volume to the node is to go first. */
export const detaching = 'volume attachment is being deleted';

/** How kube-controller-manager begins to say that a volume is attached to another node. */
export const multiAttach = 'Multi-Attach error';

async function readElsewhere(
  { spec }: Pod,
  claim: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<HangingPod['elsewhere']> {
  const all = await readAttachments(claim.spec.volumeName ?? '', reader);
  const attachment = found(all)?.find((each) => each.spec?.nodeName !== spec?.nodeName);
  if (attachment === undefined) return undefined;
  return { attachment, node: await reader.get<ClusterNode>(nodes, { name: attachment.spec?.nodeName ?? '' }) };
}

/** As kube-controller-manager names it. */
export function attachmentName({
  driver,
  volumeHandle,
  node,
}: {
  driver: string;
  volumeHandle: string;
  node: string;
}): string {
  return `csi-${createHash('sha256').update(`${volumeHandle}${driver}${node}`).digest('hex')}`;
}

/** The nodes of holders that are being deleted. */
async function readGoing(holders: Reading<Pod[]>, reader: ClusterReader): Promise<PodFacts['podNodes']> {
  const going = (found(holders) ?? []).slice(0, 1).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  return going.length === 0 ? undefined : await readNodesOf(going, reader);
}

/** Pods with a node that use the claim and have not ended. */
async function readHaving(claim: PersistentVolumeClaim, reader: ClusterReader): Promise<Reading<Pod[]>> {
  const selector = 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed';
  return await readPods(claim, selector, reader);
}

function readVolume({ spec }: PersistentVolumeClaim, reader: ClusterReader): Promise<Reading<PersistentVolume>> {
  return reader.get<PersistentVolume>(persistentVolumes, { name: spec.volumeName ?? '' });
}
