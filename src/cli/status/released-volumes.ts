import { compareBytes } from '../../base/compare-bytes.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import type { StatusReport } from '../../diagnostics/status-page/status-report.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';
import type { ReleasedVolume } from '../../provision/volume/released-volume.ts';

type Released = NonNullable<StatusReport['work']>['released'];

/** As many as the page may show; the others are only counted. */
const maxKept = 50;

/** Those that fail before the others, then the oldest. Goes through all volumes of the cluster, in slices. */
export async function releasedVolumes(
  controller: Pick<ControllerStatus, 'releasedVolumes'>,
): Promise<Released & { sharing: { count: number; example: string | undefined } }> {
  let first: ReleasedVolume[] = [];
  const sharing: { count: number; example: string | undefined } = { count: 0, example: undefined };
  let [total, failing] = [0, 0];
  for (const volume of controller.releasedVolumes()) {
    if (sliceSpent()) await nextSlice();
    if (volume === undefined) continue;
    total += 1;
    if (isFailing(volume)) failing += 1;
    if (volume.step === 'shared-storage') {
      sharing.count += 1;
      sharing.example ??= `volume ${volume.name}`;
    }
    first.push(volume);
    if (first.length >= 2 * maxKept) first = mostUrgent(first);
  }
  return { total, failing, first: mostUrgent(first), sharing };
}

function mostUrgent(volumes: readonly ReleasedVolume[]): ReleasedVolume[] {
  return volumes.toSorted(byUrgency).slice(0, maxKept);
}

function byUrgency(a: ReleasedVolume, b: ReleasedVolume): number {
  const urgency = Number(isFailing(b)) - Number(isFailing(a));
  return urgency || compareBytes(a.releasedAt ?? '', b.releasedAt ?? '') || compareBytes(a.name, b.name);
}

/** Also while the next attempt is made: until one succeeds. */
function isFailing({ failures, lastError }: ReleasedVolume): boolean {
  return lastError !== undefined || failures > 0;
}
