/** The volume is attached to a node: storage that may still be in use is not deleted. */
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import type { VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';

export const attached = defineCause({ name: 'attached' });

export function checkAttachments({ attachments }: VolumeFacts): Finding | undefined {
  if (attachments === undefined) return undefined;
  if (attachments.kind === 'unreadable') return { state: 'unknown', detail: attachments.why };
  const own = found(attachments) ?? [];
  if (own.length === 0) return { state: 'ok', detail: 'it is attached to no node' };
  const where = own.map(({ spec }) => spec?.nodeName ?? '').join(', ');
  const names = own.map(({ metadata }) => metadata.name).join(', ');
  return {
    state: 'waiting',
    cause: 'attached',
    message: `The volume is still attached to node ${where} (VolumeAttachment ${names}).`,
    cure: "Usually it is detached once its last Pod is gone. If not, check the driver's external-attacher, and whether the node still exists",
  };
}
