/** What is read of claims and volumes in protobuf: no more than their caches keep, unless they are kept whole. */
import type { ObjectDecoder } from '../../kube/protobuf/envelope.ts';
import { messageDecoder, type Selection } from '../../kube/protobuf/message-decoder.ts';
import { isWholeClaim } from './cached-claim.ts';
import type { KeptFields } from './kept-fields.ts';
import {
  migratedToKey,
  type PersistentVolume,
  type PersistentVolumeClaim,
  provisionedByKey,
  type VolumeSources,
} from '../objects.ts';

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
