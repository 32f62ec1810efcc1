/** Node deployment: one instance beside the driver on each node, which serves that node alone. */
import type { Clock, Timer } from '../../base/clock.ts';
import { shortValue } from '../../base/short-value.ts';
import { objectKey } from '../../kube/kube-object.ts';
import { claimUid, className, storageRequestBytes } from '../../provision/claim-fields.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  selectedNodeKey,
  type StorageClass,
  type TopologySelectorTerm,
} from '../../provision/objects.ts';
import type { RunOptions } from '../../provision/run-workers.ts';
import { validateClaim, volumeName } from '../create/validate-claim.ts';
import { requestParameters } from '../create/volume-plan.ts';
import type { CsiCalls } from '../csi-calls.ts';
import type { CsiProvisionerOptions, NodeHook } from '../csi-provisioner-options.ts';
import type { NodeInfo } from '../driver-info.ts';
import type { GetCapacityRequest } from '../generated/csi/v1/GetCapacityRequest.ts';
import type { Topology } from '../generated/csi/v1/Topology.ts';
import { supportsTopology } from '../topology/planned-topology.ts';
import { OwnershipContest, OwnershipLimiter } from './ownership-contest.ts';
import { ownsVolume } from './volume-ownership.ts';
import { WaitingClaims } from './waiting-claims.ts';

/** How long the selected node may take before other nodes record that the claim waits, in milliseconds. */
const selectedNodePatienceMs = 300_000;

/** How long deletions are gathered, as each claim that is checked again costs a GetCapacity; in milliseconds. */
const gatheringMs = 1000;

interface NodeDeploymentOptions {
  nodeName: string;
  /** Take part in the contest for claims that any node may take. */
  immediateBinding: boolean;
  /** Upper end of the first random wait, and its unit, in milliseconds. */
  baseDelayMs: number;
  /** Maximum wait, in milliseconds. */
  maxDelayMs: number;
  /** The driver's NodeGetInfo; read each time. */
  nodeInfo: () => NodeInfo;
  getCapacity: CsiCalls['getCapacity'];
  /** Whether the driver can be reached now. */
  driverConnected: () => boolean;
  /** Of the `CsiProvisioner` that this belongs to. */
  settings: CsiProvisionerOptions;
  /** Claims taken at the same time. */
  workers: number;
  /** A number from 0 up to 1, exclusive. Default: `Math.random`. */
  random?: (() => number) | undefined;
  /** Of the random waits. */
  clock: Clock;
}

/**
 * Which claims and volumes are this node's. A claim is when this node is the selected one; one with immediate binding
 * and no selected node goes to the node that writes its name first. Run it beside the controller.
 */
export class NodeDeployment implements NodeHook {
  readonly nodeName: string;
  readonly #options: NodeDeploymentOptions;
  readonly #contest: OwnershipContest;
  readonly #waiting: WaitingClaims;
  /** UIDs of claims that this node has declined, as its topology is not allowed or for its capacity. */
  readonly #declined = new Set<string>();
  /** Volumes that the driver has deleted so far. */
  #deletions = 0;
  #gathering: Timer | undefined;
  readonly #listeners = new Set<(uid: string) => void>();

  constructor(options: NodeDeploymentOptions) {
    const { nodeName, driverConnected, settings, baseDelayMs, maxDelayMs, workers, random, clock } = options;
    this.nodeName = nodeName;
    this.#options = options;
    this.#waiting = new WaitingClaims({ claims: settings.claims, recorder: settings.recorder, clock });
    this.#contest = new OwnershipContest({
      nodeName,
      claims: settings.claims,
      client: settings.client,
      limiter: new OwnershipLimiter({ baseMs: baseDelayMs, maxMs: maxDelayMs, ...(random && { random }) }),
      workers,
      isReady: driverConnected,
      hasRoom: (claim, signal) => this.#hasRoom(claim, signal),
      onFailed: (uid) => this.#changed(uid),
      clock,
      logger: settings.logger,
    });
  }

  /** Never waits: a claim that this node may take is entered into the contest, and requeued once it is decided. */
  async ownsClaim(claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): Promise<boolean> {
    const uid = claimUid(claim);
    const selectedNode = claim.metadata.annotations?.[selectedNodeKey] ?? '';
    if (selectedNode !== '') {
      this.#contest.leave(uid);
      this.#declined.delete(uid);
      if (selectedNode === this.nodeName) this.#waiting.forget(uid);
      else this.#waiting.note(claim, waitingForNode(selectedNode), selectedNodePatienceMs);
      return selectedNode === this.nodeName;
    }
    const failure = this.#contest.failure(uid);
    if (failure !== undefined) {
      if (storageClass !== undefined) this.#contest.clearFailure(uid); // it becomes the claim's event
      throw failure;
    }
    if (await this.#wouldTake(claim, storageClass)) this.#contest.enter(claim);
    return false;
  }

  ownsVolume(volume: PersistentVolume): boolean {
    const { nodeName, nodeInfo, settings } = this.#options;
    const { driverName, logger } = settings;
    const topologySupported = supportsTopology(settings);
    return ownsVolume(volume, { driverName, nodeName, nodeInfo: nodeInfo(), topologySupported, logger });
  }

  forgetClaim(uid: string): void {
    this.#contest.leave(uid);
    this.#declined.delete(uid);
    this.#waiting.forget(uid);
  }

  /** The driver is back, perhaps with other capacity or another topology: requeues the claims that this node has declined. */
  recheckDeclined(): void {
    const declined = [...this.#declined];
    this.#declined.clear();
    for (const uid of declined) {
      this.#contest.leave(uid); // restarts its delays
      this.#changed(uid);
    }
  }

  roomFreed(): void {
    this.#deletions += 1;
    this.#recheckSoon();
  }

  /** Calls the listener with the UID of each claim that must be synced again: something about it changed here. */
  onClaimChanged(listener: (uid: string) => void): void {
    this.#listeners.add(listener);
  }

  /** Claims that this node waits for. */
  get contested(): number {
    return this.#contest.size;
  }

  /** Takes claims until it is stopped; resolves when what was under way has ended. */
  async run(options: RunOptions): Promise<void> {
    try {
      await this.#contest.run(options);
    } finally {
      this.#gathering?.cancel();
      this.#waiting.stop();
    }
  }

  /**
   * @param given - the claim's class, where the caller has it: the cache may not show it yet.
   * @throws {Error} when the claim's class is not there.
   */
  async #wouldTake(claim: PersistentVolumeClaim, given: StorageClass | undefined): Promise<boolean> {
    const { immediateBinding, settings } = this.#options;
    if (className(claim) === '') return false;
    const storageClass = given ?? this.#classOf(claim);
    if (!immediateBinding || storageClass.volumeBindingMode !== 'Immediate') return false;
    const allowedTopologies = this.#allowedBy(storageClass);
    if (allowedTopologies.length === 0 || !supportsTopology(settings)) return true;
    try {
      await settings.topology?.requirements({
        claimName: claim.metadata.name,
        allowedTopologies,
        selectedNodeName: this.nodeName,
      });
      return true;
    } catch (error) {
      const { name } = storageClass.metadata;
      settings.logger.trace({ err: error, class: name }, 'The class does not allow this node');
      this.#decline(claim, `Waiting for a node that StorageClass ${JSON.stringify(name)} allows`);
      return false;
    }
  }

  /** Nothing of a class that cannot be translated: the node that takes the claim records the failure. */
  #allowedBy(storageClass: StorageClass): readonly TopologySelectorTerm[] {
    try {
      const translated = this.#options.settings.migration?.translateClass(storageClass) ?? storageClass;
      return translated.allowedTopologies ?? [];
    } catch {
      return [];
    }
  }

  async #hasRoom(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<boolean> {
    const { settings, getCapacity } = this.#options;
    const storageClass = this.#classOf(claim);
    const deletions = this.#deletions;
    if (await hasEnoughCapacity({ settings, getCapacity, nodeName: this.nodeName, claim, storageClass, signal })) {
      return true;
    }
    const size = claim.spec.resources?.requests?.['storage'] ?? '';
    this.#decline(
      claim,
      `Waiting for a node with room for ${size} of StorageClass ${JSON.stringify(storageClass.metadata.name)}`,
    );
    if (this.#deletions !== deletions) this.#recheckSoon(); // the driver may have looked before
    return false;
  }

  /** After these delays every node has tried. */
  #decline(claim: PersistentVolumeClaim, message: string): void {
    const { baseDelayMs, maxDelayMs } = this.#options;
    this.#declined.add(claimUid(claim));
    this.#waiting.note(claim, message, baseDelayMs + maxDelayMs);
  }

  /** Requeues the claims that this node has declined. Their delays go on, so that frequent deletions cost few checks. */
  #recheckSoon(): void {
    if (this.#declined.size === 0) return;
    this.#gathering ??= this.#options.clock.after(gatheringMs, () => {
      this.#gathering = undefined;
      const declined = [...this.#declined];
      this.#declined.clear();
      for (const uid of declined) this.#changed(uid);
    });
  }

  #changed(uid: string): void {
    for (const listener of this.#listeners) listener(uid);
  }

  #classOf(claim: PersistentVolumeClaim): StorageClass {
    const name = className(claim);
    const storageClass = this.#options.settings.classes.get(name);
    if (storageClass === undefined) throw new Error(`storageclass.storage.k8s.io "${shortValue(name)}" not found`);
    return storageClass;
  }
}

function waitingForNode(name: string): string {
  return `Waiting for node ${JSON.stringify(shortValue(name))}, which was selected`;
}

interface CapacityQuestion {
  settings: CsiProvisionerOptions;
  getCapacity: CsiCalls['getCapacity'];
  nodeName: string;
  claim: PersistentVolumeClaim;
  storageClass: StorageClass;
  signal: AbortSignal;
}

/**
 * Whether the driver has room for the claim on this node (CSI spec, `GetCapacity`). Changes nothing: no source is
 * protected, no event is recorded, nothing is remembered. A claim without a size fits everywhere.
 *
 * @throws {Error} when the claim cannot be provisioned as it is, or when GetCapacity fails.
 */
async function hasEnoughCapacity(question: CapacityQuestion): Promise<boolean> {
  const { settings, getCapacity, nodeName, claim, storageClass: given, signal } = question;
  const { uid = '', name } = claim.metadata;
  const wanted = storageRequestBytes(claim);
  if (wanted === 0n) return true;
  const { capabilities, storageClass } = validateClaim(settings, { claim, storageClass: given });
  const named = volumeName(settings.volumeNamePrefix, uid, settings.volumeNameUuidLength);
  const request: GetCapacityRequest = {
    volume_capabilities: capabilities,
    parameters: requestParameters(settings, claim, { storageClass, name: named }),
  };
  let topologies: readonly (Topology | undefined)[] = [undefined];
  if (supportsTopology(settings)) {
    const { allowedTopologies } = storageClass;
    const required = await settings.topology?.requirements({
      claimName: name,
      allowedTopologies,
      selectedNodeName: nodeName,
    });
    if (required?.requisite) topologies = required.requisite;
  }
  for (const topology of topologies) {
    const { available_capacity: available = '0' } = await getCapacity(
      topology === undefined ? request : { ...request, accessible_topology: topology },
      { signal, about: { claim: objectKey(claim) } },
    );
    if (wanted <= BigInt(available)) return true;
  }
  return false;
}
