import type { KubeObject, Resource } from '../kube/kube-object.ts';
import type { QuantityText } from '../provision/objects.ts';

/** meta/v1 LabelSelector: the nodes an object is about. */
export interface LabelSelector {
  matchLabels?: Record<string, string> | null;
  matchExpressions?: object[] | null;
}

/** storage.k8s.io/v1 CSIStorageCapacity: the capacity for a class in one segment. */
export interface StorageCapacity extends KubeObject {
  storageClassName: string;
  /** Absent: no node at all. Empty: every node. */
  nodeTopology?: LabelSelector | null;
  capacity?: QuantityText;
  /** Max size of a volume. Absent: unknown. */
  maximumVolumeSize?: QuantityText;
}

/** Labels that say which provisioner manages an object. Nothing else does: neither its name nor its owner. */
export const capacityLabels = {
  driver: 'csi.storage.k8s.io/drivername',
  managedBy: 'csi.storage.k8s.io/managed-by',
} as const;

/** The resource; Kubernetes 1.24 at least. */
export const storageCapacities: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'csistoragecapacities',
  kind: 'CSIStorageCapacity',
  namespaced: true,
  verbs: ['list', 'watch', 'create', 'update', 'delete'],
};

const baseManager = 'external-provisioner';
/** Maximum length of a label's value (Kubernetes, "Labels and Selectors", syntax). */
const maxLabelLength = 63;

/**
 * Who manages the objects of this process, as a label's value: the same after every restart.
 *
 * @param nodeName - in node deployment the node's; undefined for one provisioner of the whole cluster. A name that does
 * not fit is shortened as little as possible, since users search for it.
 */
export function managedBy(nodeName: string | undefined): string {
  if (nodeName === undefined) return baseManager;
  const whole = `${baseManager}-${nodeName}`;
  if (whole.length <= maxLabelLength) return whole;
  const hash = fnv1a(baseManager);
  const room = maxLabelLength - hash.length - 2 - nodeName.length;
  if (room <= 0) return `${baseManager}-${fnv1a(whole)}`;
  return `${baseManager.slice(0, room)}-${hash}-${nodeName}`;
}

/** FNV-1a of 32 bits over the UTF-8 bytes, as 8 hexadecimal digits. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
