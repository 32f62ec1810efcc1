import type { Lister } from '../kube/lister.ts';
import type { KubeObject, Resource } from '../kube/kube-object.ts';

/** storage.k8s.io/v1 VolumeAttachment: the fields a deletion looks at. */
export interface VolumeAttachment extends KubeObject {
  spec?: { nodeName?: string; source?: { persistentVolumeName?: string } };
}

export const volumeAttachments: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'volumeattachments',
  kind: 'VolumeAttachment',
  namespaced: false,
};

/** Name of the cache index from a volume's name to its attachments. */
export const attachmentsByVolume = 'persistentVolumeName';

/** Index values of an attachment: the volume it is for; none for inline volumes. */
export function attachedVolume(attachment: VolumeAttachment): string[] {
  const name = attachment.spec?.source?.persistentVolumeName ?? '';
  return name === '' ? [] : [name];
}

/**
 * Why a volume must not be deleted yet: any attachment of it counts, whoever made it and whatever its status.
 *
 * @returns the text for people, or nothing when the volume is free.
 */
export function stillAttached(attachments: Lister<VolumeAttachment>, volumeName: string): string | undefined {
  const [attachment] = attachments.byIndex(attachmentsByVolume, volumeName);
  if (attachment === undefined) return undefined;
  return `persistentvolume ${volumeName} is still attached to node ${attachment.spec?.nodeName ?? ''}`;
}
