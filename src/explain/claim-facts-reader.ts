/** Reads what is needed to explain a claim: as little as its state asks for, and what is independent at once. */
import { quantityBytes } from '../base/quantity.ts';
import type { KubeObject } from '../kube/kube-object.ts';
import { className, namesVolume, requestedProvisioner, selectedNode } from '../provision/claim-fields.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumes,
  type QuantityText,
  type SecretReference,
  selectedNodeKey,
  type StorageClass,
  storageClasses,
} from '../provision/objects.ts';
import { type ClaimOwner, readOwners } from './claim-owners.ts';
import {
  type ClusterEvent,
  type CsiNode,
  csiNodes,
  events,
  type Namespace,
  namespaces,
  nodes,
  type Pod,
  pods,
  secrets,
} from './cluster-objects.ts';
import { type ClusterReader, found, type Reading } from './cluster-reader.ts';
import { type DriverPod, loggedCall, readDriverPod } from './driver-log.ts';
import { cloningProtection, snapshotProtection } from './known-finalizers.ts';
import { type OtherClasses, readOtherClasses } from './other-classes.ts';
import {
  type PodFacts,
  readConsumers,
  readEvents,
  readHangingPod,
  readHolders,
  readNodes,
} from './pod-facts-reader.ts';
import { type ProvisionerFacts, readProvisioner, signOfLifeMs } from './provisioner-facts.ts';
import { type History, provisioningHistory, type Recorded } from './provisioning-events.ts';
import { readAttributesClass, readSource, readUnready, type SourceFacts } from './source-facts-reader.ts';
import { needsExisting, readStaticVolumes, type StaticVolumes } from './static-volumes.ts';

/** The Secret that the driver gets for `CreateVolume`, as the class names it. */
export type SecretOf = (storageClass: StorageClass, claim: PersistentVolumeClaim) => SecretReference | undefined;

/** What was read; what the claim's state does not require is absent. */
export interface ClaimFacts extends PodFacts, SourceFacts {
  /** The time of the API server, in milliseconds since the epoch. */
  nowMs: number;
  claim: PersistentVolumeClaim;
  /** Existing ones, of a claim for which none is provisioned. */
  staticVolumes?: StaticVolumes | undefined;
  /** About the claim. */
  events?: Reading<ClusterEvent[]> | undefined;
  /** Absent where the claim names none. */
  storageClass?: Reading<StorageClass> | undefined;
  /** Read where the claim has no class, or one that does not exist. */
  otherClasses?: OtherClasses | undefined;
  /** Controllers whose Pods would use the claim; read where its class waits for one. */
  owners?: Reading<ClaimOwner[]> | undefined;
  /** The volume that the claim names, else the one with the usual name. */
  volume?: Reading<PersistentVolume> | undefined;
  provisioner?: ProvisionerFacts | undefined;
  /** That is selected for the claim. */
  node?: Reading<KubeObject> | undefined;
  secret?: { reference: SecretReference; reading: Reading<KubeObject> } | undefined;
  /** Of a class with `allowedTopologies` while no node is selected; of an attempt that failed for want of topology: that of the selected node, else all. */
  csiNodes?: Reading<CsiNode[]> | undefined;
  /** Why the provisioner itself cannot work; undefined: the events on its Lease show it. */
  unreadiness?: string | undefined;
  /** About the Lease of the provisioner, where nothing is recorded about the claim. */
  leaseEvents?: { holder: string; events: Reading<ClusterEvent[]> } | undefined;
  /** The attempts as the provisioner itself knows them; undefined: the events show them. */
  history?: History | undefined;
  /** Milliseconds until the next attempt, as the provisioner itself knows it. */
  nextAttemptInMs?: number | undefined;
  /** Its namespace; read of a bound claim. */
  ownNamespace?: Reading<Namespace> | undefined;
  /** The Pod of the provisioner that leads and has recorded nothing about the claim, by the name in its Lease. */
  leader?: Reading<Pod> | undefined;
  /** The Pod of the provisioner whose last attempt has failed in the driver, or does not end. */
  driverPod?: DriverPod | undefined;
  /** What has to change before the next attempt; undefined: it comes by itself, or that is not known. */
  nextAttemptOnce?: string | undefined;
}

export interface ClaimReadOptions {
  reader: ClusterReader;
  now: () => number;
  secretOf: SecretOf;
}

/** Whether the class waits for a Pod, and no node was chosen for the claim yet; the alpha annotation does not count. */
export function waitsForConsumer(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): boolean {
  const chosen = claim.metadata.annotations?.[selectedNodeKey] ?? '';
  return storageClass?.volumeBindingMode === 'WaitForFirstConsumer' && chosen === '';
}

/** The provisioner that is to create the volume: the claim's, else its class's. */
export function provisionerOf(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): string {
  const migrated = claim.metadata.annotations?.[migratedToKey];
  return migrated ?? requestedProvisioner(claim) ?? storageClass?.provisioner ?? '';
}

/**
 * Reads the surroundings of a claim that is not bound, or that is being deleted. At most 17 requests, and one for each
 * further 2,000 nodes, CSIStorageCapacities, or Pods of the namespace: those that have not started or, for a claim that is
 * being deleted, have a node.
 */
export async function readClaimFacts(claim: PersistentVolumeClaim, options: ClaimReadOptions): Promise<ClaimFacts> {
  const { reader, now } = options;
  const { uid = '', deletionTimestamp } = claim.metadata;
  if (deletionTimestamp !== undefined) {
    const { finalizers = [] } = claim.metadata;
    const { volumeName = '' } = claim.spec;
    const [holders, volume, about, taken] = await Promise.all([
      readHolders(claim, reader),
      volumeName === '' ? undefined : reader.get<PersistentVolume>(persistentVolumes, { name: volumeName }),
      finalizers.includes(cloningProtection) ? readEvents(claim, reader) : undefined,
      finalizers.includes(snapshotProtection) ? readUnready(claim, reader) : undefined,
    ]);
    return { claim, ...holders, volume, ...taken, events: about, nowMs: now() };
  }
  const name = className(claim);
  const asked = requestedProvisioner(claim) === undefined ? '' : provisionerOf(claim, undefined);
  const [storageClass, volume, early] = await Promise.all([
    name === '' ? undefined : reader.get<StorageClass>(storageClasses, { name }),
    reader.get<PersistentVolume>(persistentVolumes, { name: claim.spec.volumeName || `pvc-${uid}` }),
    asked === '' ? undefined : readProvisioner(asked, reader),
  ]);
  const facts = { claim, storageClass, volume, provisioner: early };
  const lacksClass = !namesVolume(claim) && (name === '' || storageClass?.kind === 'missing');
  const [further, existing, otherClasses] = await Promise.all([
    isSettled(facts) ? {} : readFurther(facts, options),
    readExisting(facts, reader),
    lacksClass ? readOtherClasses(claim, reader) : undefined,
  ]);
  return { ...facts, ...further, ...existing, otherClasses, nowMs: now() };
}

/** Existing volumes, for a claim that only such a one can serve; where it names one that may not be read, what kube-controller-manager says. */
async function readExisting(
  { claim, storageClass, volume }: Omit<ClaimFacts, 'nowMs'>,
  reader: ClusterReader,
): Promise<Pick<ClaimFacts, 'staticVolumes' | 'events'>> {
  if (namesVolume(claim)) {
    if (volume?.kind === 'unreadable') return { events: await readEvents(claim, reader) };
    return volume?.kind === 'missing'
      ? { staticVolumes: await readStaticVolumes(claim, { reader, withHosts: false }) }
      : {};
  }
  if (volume?.kind === 'found' || !needsExisting(claim, storageClass)) return {};
  const withHosts = waitsForConsumer(claim, found(storageClass));
  return { staticVolumes: await readStaticVolumes(claim, { reader, withHosts }) };
}

/** Whether a bound claim requests more than it has. */
export function isToBeExpanded(claim: PersistentVolumeClaim): boolean {
  const { wanted, has } = sizesOf(claim);
  return wanted !== undefined && has !== undefined && quantityBytes(wanted) > quantityBytes(has);
}

/** What a claim requests, and what it has. */
export function sizesOf({ spec, status }: PersistentVolumeClaim): Record<'wanted' | 'has', QuantityText | undefined> {
  return { wanted: spec.resources?.requests?.['storage'], has: status?.capacity?.['storage'] };
}

/**
 * Of a bound claim: a Pod that uses it and does not start; else whether its namespace is being deleted, with the Pods in the way of
 * that; else what becomes of a request for more, and its volume with the node that was selected for it. At most five requests, or
 * twelve while a Pod or the namespace is being deleted, and one for each further 2,000 Pods of the namespace that have not ended.
 */
export async function readBoundFacts(
  claim: PersistentVolumeClaim,
  { reader, now }: Pick<ClaimReadOptions, 'reader' | 'now'>,
): Promise<ClaimFacts> {
  const { hanging, ...pods } = await readHangingPod(claim, reader);
  // a program that crashes may wait for the room that is on its way
  const isForRoom = isToBeExpanded(claim) && hanging?.pod.status?.phase === 'Running';
  const used = { ...pods, ...(!isForRoom && { hanging }) };
  const isStarting = hanging?.pod.metadata.deletionTimestamp === undefined;
  if (used.hanging !== undefined && isStarting) return { claim, ...used, nowMs: now() };
  const { namespace = '' } = claim.metadata;
  const [name, { volumeName = '' }] = [selectedNode(claim), claim.spec];
  const [ownNamespace, about, volume, node] = await Promise.all([
    reader.get<Namespace>(namespaces, { name: namespace }),
    isToBeExpanded(claim) ? readEvents(claim, reader) : undefined,
    name === '' ? undefined : reader.get<PersistentVolume>(persistentVolumes, { name: volumeName }),
    name === '' ? undefined : reader.get<KubeObject>(nodes, { name }),
  ]);
  const isGoing = found(ownNamespace)?.metadata.deletionTimestamp !== undefined;
  const holders = isGoing ? await readHolders(claim, reader) : {};
  return { claim, ...used, ...holders, ownNamespace, events: about, volume, node, nowMs: now() };
}

/** The first responses already say what holds it. */
function isSettled({ claim, storageClass, volume }: Omit<ClaimFacts, 'nowMs'>): boolean {
  if (namesVolume(claim)) return true;
  if (volume?.kind === 'found') return true;
  return storageClass === undefined || storageClass.kind === 'missing';
}

async function readFurther(
  { claim, storageClass, provisioner }: Omit<ClaimFacts, 'nowMs'>,
  { reader, now, secretOf }: ClaimReadOptions,
): Promise<Partial<ClaimFacts>> {
  const ofClass = found(storageClass);
  if (waitsForConsumer(claim, ofClass)) {
    const [consumers, driverNodes, owners] = await Promise.all([
      readConsumers(claim, ofClass, reader),
      readDriverNodes(claim, ofClass, reader),
      readOwners(claim, reader),
    ]);
    return { ...consumers, ...driverNodes, owners };
  }
  const node = selectedNode(claim);
  const [about, serving, chosen, sources, attributes, secret, driverNodes] = await Promise.all([
    readEvents(claim, reader),
    provisioner ?? (ofClass && readProvisioner(ofClass.provisioner, reader)),
    node === '' ? undefined : reader.exists(nodes, { name: node }),
    readSource(claim, reader),
    readAttributesClass(claim, reader),
    ofClass && readSecret(secretOf, ofClass, claim, reader),
    readDriverNodes(claim, ofClass, reader),
  ]);
  const history = provisioningHistory(found(about) ?? [], provisionerOf(claim, ofClass));
  const { lastMs = -Infinity } = history;
  const isSilent = now() - lastMs > signOfLifeMs;
  const [leaseEvents, leader, driverPod, registered] = await Promise.all([
    isSilent ? readLeaseEvents(serving, reader) : undefined,
    isSilent ? readLeader(serving, reader) : undefined,
    readDriverPod(loggedCall(history, now()), serving, reader),
    history.failed !== undefined && lacksTopology(history.failed) ? readRegistered(node, reader) : undefined,
  ]);
  return {
    events: about,
    provisioner: serving,
    node: chosen,
    ...sources,
    ...attributes,
    secret,
    ...(registered && { csiNodes: registered }),
    ...driverNodes,
    leaseEvents,
    leader,
    driverPod,
  };
}

/** The nodes and where the driver is registered; read only for a class with `allowedTopologies`. */
async function readDriverNodes(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
  reader: ClusterReader,
): Promise<Pick<ClaimFacts, 'nodes' | 'csiNodes'>> {
  if ((storageClass?.allowedTopologies ?? []).length === 0 || selectedNode(claim) !== '') return {};
  const [all, registered] = await Promise.all([readNodes(reader), reader.list<CsiNode>(csiNodes)]);
  return { nodes: all, csiNodes: registered };
}

/** Whether an attempt has failed for want of topology; its text may begin with the class. */
export function lacksTopology({ text }: Recorded): boolean {
  return text.includes('error generating accessibility requirements: ');
}

/** Where the driver is registered: on the selected node, else on which nodes. */
async function readRegistered(node: string, reader: ClusterReader): Promise<Reading<CsiNode[]>> {
  if (node === '') return await reader.list<CsiNode>(csiNodes);
  const reading = await reader.get<CsiNode>(csiNodes, { name: node });
  return reading.kind === 'found' ? { kind: 'found', value: [reading.value] } : reading;
}

/** A process names itself in its Lease by its host, which is the name of its Pod, or, on the network of the host, of its node. */
async function readLeader(
  provisioner: ProvisionerFacts | undefined,
  reader: ClusterReader,
): Promise<Reading<Pod> | undefined> {
  const [lease] = found(provisioner?.leases) ?? [];
  const holder = lease?.spec?.holderIdentity ?? '';
  if (lease === undefined || holder === '') return undefined;
  return await reader.get<Pod>(pods, { namespace: lease.metadata.namespace ?? '', name: holder });
}

/** What the leader of the provisioner has recorded about itself, on its Lease. */
async function readLeaseEvents(
  provisioner: ProvisionerFacts | undefined,
  reader: ClusterReader,
): Promise<ClaimFacts['leaseEvents']> {
  const [lease] = found(provisioner?.leases) ?? [];
  if (lease === undefined) return undefined;
  const { namespace = '', name } = lease.metadata;
  const fieldSelector = `involvedObject.kind=Lease,involvedObject.name=${name}`;
  const about = await reader.list<ClusterEvent>(events, { namespace, fieldSelector });
  return { holder: lease.spec?.holderIdentity ?? '', events: about };
}

async function readSecret(
  secretOf: SecretOf,
  storageClass: StorageClass,
  claim: PersistentVolumeClaim,
  reader: ClusterReader,
): Promise<ClaimFacts['secret']> {
  let reference: SecretReference | undefined;
  try {
    reference = secretOf(storageClass, claim);
  } catch {
    return undefined; // the provisioner's event says what is wrong with the class
  }
  if (reference === undefined) return undefined;
  return { reference, reading: await reader.exists(secrets, reference) };
}
