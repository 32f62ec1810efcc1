import type { PersistentVolumeClaim } from '../../provision/objects.ts';
import { goQuote } from '../../base/go-quote.ts';
import { shortValue } from '../../base/short-value.ts';
import { allowVolumeModeChangeKey } from '../annotation-keys.ts';
import type { VolumeSnapshotContent } from './snapshot-objects.ts';

const truths = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const untruths = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/**
 * Refuses a restore that would convert a filesystem to a block device, or the reverse, unless the content's annotation
 * allows it (Kubernetes CSI documentation, "Prevent unauthorised conversion of source volume mode"). Nothing is refused
 * where one of the modes is not known.
 *
 * @throws {Error} that says why there is no permission.
 */
export function checkVolumeModeConversion(content: VolumeSnapshotContent, claim: PersistentVolumeClaim): void {
  const source = content.spec?.sourceVolumeMode;
  const requested = claim.spec.volumeMode;
  if (source === undefined || requested === undefined || source === requested) return;
  const { name, namespace = '' } = claim.metadata;
  const refuse = (why: string): Error =>
    new Error(
      `requested volume ${namespace}/${name} modifies the mode of the source volume but does not have permission to do so. ${why}`,
    );
  const value = content.metadata.annotations?.[allowVolumeModeChangeKey];
  if (value === undefined) {
    throw refuse(`${allowVolumeModeChangeKey} annotation is not present on snapshotcontent ${content.metadata.name}`);
  }
  if (truths.has(value)) return;
  if (untruths.has(value)) {
    throw refuse(`${allowVolumeModeChangeKey} is set to false on snapshotcontent ${content.metadata.name}`);
  }
  throw refuse(
    `failed to convert ${allowVolumeModeChangeKey} annotation value to boolean with error: strconv.ParseBool: parsing ${goQuote(shortValue(value))}: invalid syntax`,
  );
}
