/** The caches of provisioning, which can be shared: each keeps only what is read, and the fields requested. */
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import { warningLogger } from '../../base/text-logger.ts';
import { Informer } from '../../kube/cache/informer.ts';
import type { ReflectorMetrics } from '../../kube/cache/reflector-metrics.ts';
import { SharedValues } from '../../kube/cache/store.ts';
import type { Transport } from '../../kube/client/transport.ts';
import type { KubeObject } from '../../kube/kube-object.ts';
import type { ObjectDecoder } from '../../kube/protobuf/envelope.ts';
import { messageDecoder, type Selection } from '../../kube/protobuf/message-decoder.ts';
import { claimUid } from '../claim-fields.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  provisionedByKey,
  type StorageClass,
  storageClasses,
  type VolumeSources,
} from '../objects.ts';
import { ClaimBudget, claimTransform, isWholeClaim, sameButVersion, sameClaim } from './cached-claim.ts';
import { isWholeVolume, sameVolume, storageHashes, volumeTransform } from './cached-volume.ts';
import type { KeptFields } from './kept-fields.ts';

/** The options of `provisionInformers`. */
export interface ProvisionInformersOptions {
  transport: Transport;
  /** The provisioner names of this process: of volumes of others only the names are kept. */
  isKnownProvisioner: (name: string) => boolean;
  /** Default: the machine's own time. */
  clock?: Clock;
  /** Default: warnings and errors, to standard error. */
  logger?: Logger;
  metrics?: (resource: string) => ReflectorMetrics;
  /**
   * What is kept of volumes of ours that are Bound, beyond what the controller reads: a program that exports them again
   * after a restart wants `{ spec: ['nfs'], annotations: ['example.com/export'] }`. Other volumes of ours are kept whole.
   * Default: nothing more.
   */
  volumeFields?: KeptFields<PersistentVolume> | undefined;
  /**
   * The same for claims that have a volume of any provisioner. Claims without one are kept whole up to 8,192
   * characters; larger ones are read from the API server when they are provisioned. Default: nothing more.
   */
  claimFields?: KeptFields<PersistentVolumeClaim> | undefined;
  /**
   * What identifies the storage of a volume, as `Provisioner.storageKeys`. All volumes are indexed by it, also those of other
   * provisioners, at some 50 bytes for each that has a key. Default: no index.
   */
  storageKeys?: ((volume: PersistentVolume) => readonly string[]) | undefined;
  /**
   * Whether the storage of a volume is of the provisioner's backend, as `Provisioner.ownsSource`: without it, a Bound volume that names
   * the provisioner has its finalizer kept whatever its source. Default: each is.
   */
  ownsSource?: ((volume: PersistentVolume) => boolean) | undefined;
  /**
   * What `storageKeys` and `ownsSource` read of a volume besides its labels and annotations that are kept: nothing more is decoded for
   * them. Default: all of each volume.
   */
  storageSources?: StorageSources | undefined;
  /** Makes writes into cached objects throw: for development and tests. Default false. */
  freeze?: boolean;
}

/** The caches of one controller; the caller that makes them runs them. */
export interface ProvisionInformers {
  claims: Informer<PersistentVolumeClaim>;
  volumes: Informer<PersistentVolume>;
  classes: Informer<StorageClass>;
}

/** Name of the claims' index by UID. */
export const uidIndex = 'uid';
/** Name of the volumes' index by the UID of the claim that they were provisioned for, while they are not bound to it. */
export const unboundForIndex = 'unboundFor';

/** Name of the volumes' index by the hashes of their storage keys; only with `storageKeys`. */
export const storageIndex = 'storage';

/**
 * Makes the three caches; nothing is read before they are run. Their objects are for reading: `KubeClient.update`
 * refuses them, also those that are kept whole, since they lack fields that are newer than this version.
 *
 * @param budget - the limit for claims without a volume that are kept whole; those that exceed it are kept in part.
 */
export function provisionInformers(options: ProvisionInformersOptions, budget = new ClaimBudget()): ProvisionInformers {
  const { transport, isKnownProvisioner, volumeFields, claimFields, metrics, freeze = false } = options;
  const { clock = systemClock, logger = warningLogger, storageKeys, ownsSource } = options;
  const readsSources = storageKeys !== undefined || ownsSource !== undefined;
  const storageSources = readsSources ? (options.storageSources ?? 'all') : [];
  const shared = new SharedValues();
  const common = { transport, clock, logger, freeze };
  return {
    claims: new Informer({
      ...common,
      resource: persistentVolumeClaims,
      transform: claimTransform(shared, claimFields, budget),
      onStoreChange: (old, claim) => budget.changed(old, claim),
      protobuf: claimDecoder(claimFields),
      sameContent: claimFields === undefined ? sameClaim : sameButVersion,
      indexers: { [uidIndex]: (claim) => [claimUid(claim)] },
      metrics: metrics?.(persistentVolumeClaims.plural),
    }),
    volumes: new Informer({
      ...common,
      resource: persistentVolumes,
      transform: volumeTransform({ shared, isKnownProvisioner, ownsSource, fields: volumeFields, storageKeys }),
      protobuf: volumeDecoder((volume) => isWholeVolume(volume, isKnownProvisioner), volumeFields, storageSources),
      sameContent: volumeFields === undefined ? sameVolume : sameButVersion,
      indexers: {
        [unboundForIndex]: unboundFor,
        ...(storageKeys !== undefined && { [storageIndex]: storageHashes }),
      },
      metrics: metrics?.(persistentVolumes.plural),
    }),
    classes: new Informer({
      ...common,
      resource: storageClasses,
      transform: withoutManagedFields<StorageClass>,
      protobuf: messageDecoder('StorageClass'),
      metrics: metrics?.(storageClasses.plural),
    }),
  };
}

/** Reads fields that only whole volumes have: these are ours and few, so the index stays small. */
function unboundFor({ metadata, spec, status }: PersistentVolume): string[] {
  const { phase = 'Pending' } = status ?? {};
  const uid = spec.claimRef?.uid ?? '';
  const isProvisioned =
    metadata.annotations?.[provisionedByKey] !== undefined && metadata.deletionTimestamp === undefined;
  return isProvisioned && uid !== '' && ['Pending', 'Available'].includes(phase) ? [uid] : [];
}

/** An object as it was received, without the fields that only the API server reads. */
export function withoutManagedFields<T extends KubeObject>(object: KubeObject): T {
  delete (object.metadata as { managedFields?: unknown }).managedFields;
  return object as T;
}

/** The volume sources to decode, of `csi` only the driver and the handle; `all`: each volume whole. */
export type StorageSources = readonly (keyof VolumeSources)[] | 'all';

/** Fields of every cached object. */
const identity = { name: true, namespace: true, uid: true, resourceVersion: true } as const;
const deletion = { deletionTimestamp: true, finalizers: true } as const;

/** The decoder for `claimTransform` with the same fields. */
export function claimDecoder(fields?: KeptFields<PersistentVolumeClaim>): ObjectDecoder {
  const whole = messageDecoder<PersistentVolumeClaim>('PersistentVolumeClaim');
  const reduced = messageDecoder<PersistentVolumeClaim>('PersistentVolumeClaim', {
    metadata: { ...identity, ...deletion, ...selectedMetadata(fields) },
    spec: {
      volumeName: true,
      storageClassName: true,
      volumeMode: true,
      resources: { requests: { storage: true } },
      dataSource: true,
      dataSourceRef: true,
      ...selectedKeys(fields?.spec),
    },
    status: { phase: true },
  });
  return (bytes, start, end) => {
    const claim = reduced(bytes, start, end);
    return isWholeClaim(claim) ? whole(bytes, start, end) : claim;
  };
}

/**
 * The decoder for `volumeTransform` with the same fields.
 *
 * @param isWhole - the volumes that it keeps whole.
 * @param storageSources - the sources that its `storageKeys` and `ownsSource` read. Default: none.
 */
export function volumeDecoder(
  isWhole: (volume: PersistentVolume) => boolean,
  fields?: KeptFields<PersistentVolume>,
  storageSources: StorageSources = [],
): ObjectDecoder {
  const whole = messageDecoder<PersistentVolume>('PersistentVolume');
  if (storageSources === 'all') return whole;
  const reduced = messageDecoder<PersistentVolume>('PersistentVolume', {
    metadata: {
      ...identity,
      ...deletion,
      ...selectedMetadata({
        ...fields,
        annotations:
          fields?.annotations === 'all' ? 'all' : [provisionedByKey, migratedToKey, ...(fields?.annotations ?? [])],
      }),
    },
    spec: {
      persistentVolumeReclaimPolicy: true,
      storageClassName: true,
      ...selectedKeys(storageSources),
      csi: { driver: true, ...(storageSources.includes('csi') && { volumeHandle: true }) },
      ...selectedKeys(fields?.spec),
    },
    status: { phase: true },
  });
  return (bytes, start, end) => {
    const volume = reduced(bytes, start, end);
    return isWhole(volume) ? whole(bytes, start, end) : volume;
  };
}

function selectedMetadata({
  annotations,
  labels,
}: Pick<KeptFields<PersistentVolume>, 'annotations' | 'labels'> = {}): Selection {
  return {
    ...(annotations && { annotations: annotations === 'all' || selectedKeys(annotations) }),
    ...(labels && { labels: labels === 'all' || selectedKeys(labels) }),
  };
}

function selectedKeys(keys: readonly string[] = []): Selection {
  return Object.fromEntries(keys.map((key) => [key, true as const]));
}
