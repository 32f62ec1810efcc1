/** An annotation names a provisioner, but the storage is not of its backend. */
import { migratedToKey, provisionedByKey } from '../../provision/keys.ts';
import {
  contradictionOf,
  contradictionText,
  isForeignToDriver,
  isLeftUndone,
} from '../../provision/volume/owns-volume.ts';
import { found } from '../cluster-reader.ts';
import type { Finding } from '../explanation.ts';
import { deletionHistory } from '../provisioning-events.ts';
import type { VolumeFacts } from '../volume-facts-reader.ts';
import { defineCause } from './cause.ts';

export const otherSource = defineCause({ name: 'other-source' });

/**
 * Only the provisioner itself knows which sources are its own. So its event decides, as long as it fits the volume. The API server keeps
 * events for an hour: without one only CSI drivers are judged, whose volumes have sources of their own name.
 */
export function checkOtherSource({ volume, provisioner, events }: VolumeFacts): Finding | undefined {
  if (!isLeftUndone(volume, true)) return undefined;
  const { [provisionedByKey]: provisionedBy, [migratedToKey]: migratedTo } = volume.metadata.annotations ?? {};
  const { waiting } = deletionHistory(found(events) ?? []);
  for (const name of [provisionedBy, migratedTo]) {
    const contradiction = contradictionOf(volume, (each) => each === name);
    if (name === undefined || contradiction === undefined) continue;
    const isRecorded = waiting?.text === contradictionText(volume, contradiction);
    const isDriver = provisioner?.name === name && provisioner.driver.kind === 'found';
    if (!isRecorded && !(isDriver && isForeignToDriver(volume, name))) continue;
    const { what, cure } = contradiction;
    return { state: 'stuck', cause: 'other-source', message: `The volume is left as it is: ${what}.`, cure };
  }
  return undefined;
}
