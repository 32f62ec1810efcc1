import type { LookOptions } from './look.ts';
import { driverVolume } from './driver-volume.ts';
import type { Finding, FindingState } from './finding.ts';
import { verifyMissing } from './verify-missing.ts';

/** So many volumes are requested by themselves for their size: with more findings than that nobody reads each. */
const maxRequests = 100;
/** There is no storage in the other states, or nobody asks for its size. */
const withStorage: ReadonlySet<FindingState> = new Set<FindingState>([
  'leaked',
  'stuck',
  'candidate',
  'unexplained',
  'being-deleted',
  'being-made',
]);

/**
 * Adds the size of volumes to their findings where the list does not say it and the driver has GET_VOLUME. What
 * cannot be read stays unknown.
 *
 * @throws when the signal aborts.
 */
export async function addDriverFacts(
  findings: readonly Finding[],
  { driver, progress, signal }: Pick<LookOptions, 'driver' | 'progress' | 'signal'>,
): Promise<void> {
  if (!driver.capabilities.getVolume) return;
  const open = findings.filter(
    ({ state, capacityBytes, volumeId }) =>
      capacityBytes === undefined && volumeId !== undefined && withStorage.has(state),
  );
  const byId = Map.groupBy(open, ({ volumeId = '' }) => volumeId);
  await verifyMissing([...byId.keys()].slice(0, maxRequests), {
    calls: driver.calls,
    onThere: (id, answer) => {
      const { capacityBytes } = driverVolume(answer);
      if (capacityBytes === undefined) return;
      for (const finding of byId.get(id) ?? []) finding.capacityBytes = capacityBytes;
    },
    onCount: (count) => progress.at(`Requesting the sizes of volumes: ${count}`),
    signal,
  });
}
