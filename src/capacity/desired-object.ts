/** Capacity objects as they should be: all decisions, no requests. */
import { capacityText, quantityBytes, QuantityError } from '../base/quantity.ts';
import { apiVersion, type ObjectMeta, type OwnerReference, type Resource } from '../kube/kube-object.ts';
import type { QuantityText } from '../provision/objects.ts';
import type { CapacityItem } from './capacity-items.ts';
import type { DriverCapacity } from './driver-capacity.ts';
import { capacityLabels, type StorageCapacity } from './storage-capacity.ts';

/** What all objects of one process have in common. */
export interface ObjectFrame {
  resource: Resource;
  namespace: string;
  driverName: string;
  managedBy: string;
  /** Undefined: none is added, and existing ones stay. */
  owner: OwnerReference | undefined;
}

/** Selects the objects that are ours to keep and to delete. */
export function capacitySelector({ driverName, managedBy }: Pick<ObjectFrame, 'driverName' | 'managedBy'>): string {
  return `${capacityLabels.driver}=${driverName},${capacityLabels.managedBy}=${managedBy}`;
}

/** Whether the object's labels say that it is ours. */
export function isManaged(object: StorageCapacity, frame: Pick<ObjectFrame, 'driverName' | 'managedBy'>): boolean {
  const { labels = {} } = object.metadata;
  return labels[capacityLabels.driver] === frame.driverName && labels[capacityLabels.managedBy] === frame.managedBy;
}

/** A new object for an item; the API server gives it its name. */
export function newObject(frame: ObjectFrame, item: CapacityItem, capacity: DriverCapacity): StorageCapacity {
  const { resource, namespace, driverName, managedBy, owner } = frame;
  return {
    apiVersion: apiVersion(resource),
    kind: resource.kind,
    metadata: {
      generateName: 'csisc-',
      namespace,
      labels: { [capacityLabels.driver]: driverName, [capacityLabels.managedBy]: managedBy },
      ...(owner !== undefined && { ownerReferences: [owner] }),
    } as Partial<ObjectMeta> as ObjectMeta,
    storageClassName: item.className,
    nodeTopology: Object.keys(item.segment.labels).length === 0 ? {} : { matchLabels: { ...item.segment.labels } },
    ...amounts(capacity),
  };
}

/** The change that an existing object needs. */
export interface ObjectChange {
  /** Undefined: no write is needed. */
  object: StorageCapacity | undefined;
  /** Another object controls it, and there can be but one: ours is not added. */
  foreignOwner: OwnerReference | undefined;
}

/** Compares an object with the driver's present capacity. Fields that are not ours are kept. */
export function changeObject(frame: ObjectFrame, known: StorageCapacity, capacity: DriverCapacity): ObjectChange {
  const { resource, owner } = frame;
  const owners = known.metadata.ownerReferences ?? [];
  const controller = owners.find((each) => each.controller === true);
  const isOwned = owner === undefined || isOwnedBy(known, owner);
  const foreignOwner = isOwned ? undefined : controller;
  const ownerMissing = !isOwned && foreignOwner === undefined;
  const same =
    bytesOf(known.capacity) === capacity.available && bytesOf(known.maximumVolumeSize) === capacity.maximumVolumeSize;
  if (same && !ownerMissing) return { object: undefined, foreignOwner };
  const { maximumVolumeSize: _old, ...rest } = known;
  return {
    foreignOwner,
    object: {
      ...rest,
      apiVersion: apiVersion(resource),
      kind: resource.kind,
      metadata: ownerMissing ? { ...known.metadata, ownerReferences: [...owners, owner] } : known.metadata,
      ...amounts(capacity),
    },
  };
}

/** Whether the owner controls the object. */
export function isOwnedBy({ metadata: { ownerReferences = [] } }: StorageCapacity, owner: OwnerReference): boolean {
  return ownerReferences.some(({ uid, controller }) => controller === true && uid === owner.uid);
}

function amounts({ available, maximumVolumeSize }: DriverCapacity): Partial<StorageCapacity> {
  return {
    capacity: capacityText(available),
    ...(maximumVolumeSize !== undefined && { maximumVolumeSize: capacityText(maximumVolumeSize) }),
  };
}

/** By value: a server may write the same amount in another form. An unreadable one equals nothing. */
function bytesOf(text: QuantityText | undefined): bigint | undefined {
  if (text === undefined) return undefined;
  try {
    return quantityBytes(text);
  } catch (error) {
    if (error instanceof QuantityError) return -1n;
    throw error;
  }
}
