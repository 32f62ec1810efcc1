/** The PersistentVolumes of one driver, as far as an audit needs them: a large cluster has a hundred thousand. */
import type { Clock } from '../base/clock.ts';
import { inSlices } from '../base/event-loop.ts';
import type { Logger } from '../base/logger.ts';
import type { NodeInfo } from '../csi/driver-info.ts';
import { identityKey, nodeOfIdentity } from '../csi/identity.ts';
import type { MigrationHook } from '../csi/migration/driver-migration.ts';
import { selectsNode } from '../csi/topology/topology-term.ts';
import { CodingChoice } from '../kube/cache/coding-choice.ts';
import { pagedList, pageSize } from '../kube/cache/paged-list.ts';
import type { Transport } from '../kube/client/transport.ts';
import { messageDecoder } from '../kube/protobuf/message-decoder.ts';
import { type PersistentVolume, persistentVolumes } from '../provision/objects.ts';
import { namesProvisioner } from '../provision/volume-fields.ts';

/**
 * Whether the driver that is asked has the volume's storage, if there is any. Not so in node deployment, where each node's
 * driver lists its own volumes.
 */
export type VolumeHome = 'here' | 'elsewhere' | 'unknown';

/** A PersistentVolume of the driver. */
export interface ClusterVolume {
  readonly name: string;
  /** The driver's id; of an in-tree volume as Kubernetes translates it. */
  readonly handle: string;
  /** `namespace/name`; empty: no claim. */
  readonly claim: string;
  /** UID of the claim, where the name does not contain it: a large cluster has many of them. */
  readonly claimUid: string;
  /** In seconds since the Unix epoch; NaN: unknown. */
  readonly createdAtSeconds: number;
  /** Of the PersistentVolume, as a quantity; empty: unknown. */
  readonly capacity: string;
  readonly phase: string;
  /** This provisioner created it. */
  readonly isOurs: boolean;
  readonly home: VolumeHome;
  /** Of the in-tree plugin that the driver replaced: the driver may use another id. */
  readonly isInTree: boolean;
  isListed: boolean;
  /** Another PersistentVolume with the same handle. */
  next: ClusterVolume | undefined;
}

export interface ClusterVolumesOptions {
  driverName: string;
  /** Of a driver that replaced an in-tree plugin. */
  migration: MigrationHook | undefined;
  pluginName: string | undefined;
  /** @param volume - in CSI form. */
  homeOf: (volume: PersistentVolume) => VolumeHome;
}

export class ClusterVolumes {
  readonly #options: ClusterVolumesOptions;
  readonly #byHandle = new Map<string, ClusterVolume>();
  /** Volumes of the in-tree plugin, which the driver may list under other ids, by what both have in common. */
  readonly #inTree = new Map<string, ClusterVolume[]>();
  #count = 0;

  constructor(options: ClusterVolumesOptions) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  clear(): void {
    this.#byHandle.clear();
    this.#inTree.clear();
    this.#count = 0;
  }

  /** Takes a PersistentVolume of the cluster; those of other drivers are left out. */
  add(volume: PersistentVolume): void {
    const { driverName, migration, pluginName, homeOf } = this.#options;
    const { translated, isInTree } = asCsi(volume, migration);
    const { csi } = translated.spec;
    if (!isInTree && csi?.driver !== driverName) return;
    const { claimRef } = volume.spec;
    const claimUid = claimRef?.uid ?? '';
    const entry: ClusterVolume = {
      name: volume.metadata.name,
      handle: csi?.volumeHandle ?? '',
      claim: claimRef === undefined ? '' : `${claimRef.namespace ?? ''}/${claimRef.name ?? ''}`,
      claimUid: claimUid !== '' && volume.metadata.name.includes(claimUid) ? '' : claimUid,
      createdAtSeconds: Math.trunc(Date.parse(volume.metadata.creationTimestamp ?? '') / 1000),
      capacity: String(volume.spec.capacity?.['storage'] ?? ''),
      phase: volume.status?.phase ?? '',
      isOurs: isMadeHere(volume, (name) => name === driverName || name === pluginName),
      home: homeOf(translated),
      isInTree,
      isListed: false,
      next: this.#byHandle.get(csi?.volumeHandle ?? ''),
    };
    this.#count++;
    this.#byHandle.set(entry.handle, entry);
    if (isInTree) this.#addInTree(volume, entry);
  }

  #addInTree(volume: PersistentVolume, entry: ClusterVolume): void {
    for (const key of this.#options.migration?.storageKeys(volume) ?? []) {
      const others = this.#inTree.get(key);
      if (others === undefined) this.#inTree.set(key, [entry]);
      else others.push(entry);
    }
  }

  /** The PersistentVolumes with this very handle; `next` leads to further ones. */
  with(handle: string): ClusterVolume | undefined {
    return handle === '' ? undefined : this.#byHandle.get(handle);
  }

  /** One entry for each handle. */
  handles(): Iterable<ClusterVolume> {
    return this.#byHandle.values();
  }

  /** Takes the ids away that volumes of the in-tree plugin may mean, in doubt too many. */
  async takeInTree(ids: Map<string, unknown>): Promise<void> {
    const { migration } = this.#options;
    if (migration === undefined || this.#inTree.size === 0) return;
    const found: string[] = [];
    await inSlices(ids.keys(), (id) => {
      const holders = this.#inTree.get(migration.handleKey(id));
      if (holders === undefined) return;
      for (const holder of holders) holder.isListed = true;
      found.push(id);
    });
    for (const id of found) ids.delete(id);
  }
}

const decodeVolume = messageDecoder<PersistentVolume>('PersistentVolume');

/** Reads all PersistentVolumes live. @throws {ApiError} and {TransportError} when they cannot be listed. */
export async function readClusterVolumes(
  options: ClusterVolumesOptions & {
    transport: Transport;
    onCount: (count: number) => void;
    /** Whether a volume is wanted at all. Default: each is. */
    isWanted?: (name: string) => boolean;
    clock: Clock;
    logger: Logger;
    signal: AbortSignal;
  },
): Promise<ClusterVolumes> {
  const { transport, onCount, isWanted, clock, logger, signal } = options;
  const volumes = new ClusterVolumes(options);
  let count = 0;
  await pagedList({
    coding: new CodingChoice({ transport, protobuf: decodeVolume, clock, logger }),
    resource: persistentVolumes,
    resourceVersion: '', // live
    limit: pageSize,
    optional: true,
    onStart: () => {
      volumes.clear();
      count = 0;
    },
    onItem: (item) => {
      if (isWanted?.(item.metadata.name) !== false) volumes.add(item as PersistentVolume);
      if (++count % pageSize === 0) onCount(count);
    },
    signal,
  });
  return volumes;
}

/** A volume that cannot be translated is the plugin's all the same. */
function asCsi(
  volume: PersistentVolume,
  migration: MigrationHook | undefined,
): { translated: PersistentVolume; isInTree: boolean } {
  if (volume.spec.csi !== undefined || migration === undefined) return { translated: volume, isInTree: false };
  try {
    const translated = migration.toCsi(volume);
    return { translated, isInTree: translated !== volume };
  } catch {
    return { translated: volume, isInTree: true };
  }
}

/** A volume that was created by hand has no annotation of a provisioner. */
function isMadeHere(volume: PersistentVolume, isKnownProvisioner: (name: string) => boolean): boolean {
  return namesProvisioner({ ...volume, spec: {} }, isKnownProvisioner);
}

/**
 * In node deployment: whether the driver of this node has the storage of a volume. Where node affinity and the identity of who
 * created it do not agree, or say nothing, it is unknown, and so never called lost.
 *
 * @param volume - in CSI form.
 */
export function nodeVolumeHome(
  volume: PersistentVolume,
  node: { driverName: string; nodeName: string; nodeInfo: NodeInfo },
): VolumeHome {
  const madeOn = nodeOfIdentity(volume.spec.csi?.volumeAttributes?.[identityKey], node.driverName) ?? '';
  const fitsNode = fits(volume, node.nodeInfo);
  if (madeOn === node.nodeName) return 'here';
  if (fitsNode === false) return 'elsewhere';
  if (madeOn !== '') return fitsNode === true ? 'unknown' : 'elsewhere';
  return fitsNode === true ? 'here' : 'unknown';
}

/**
 * Of the only driver for all nodes: it has all volumes, but where a sidecar on a node created one, this driver may be that of
 * another node.
 *
 * @param volume - in CSI form.
 */
export function centralVolumeHome({ spec }: PersistentVolume, driverName: string): VolumeHome {
  return (nodeOfIdentity(spec.csi?.volumeAttributes?.[identityKey], driverName) ?? '') === '' ? 'here' : 'unknown';
}

/** Undefined: the node affinity, or the driver, does not say. */
function fits({ spec }: PersistentVolume, { segments }: NodeInfo): boolean | undefined {
  const terms = spec.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined || segments === undefined) return undefined;
  try {
    return selectsNode(terms, segments);
  } catch {
    return undefined;
  }
}
