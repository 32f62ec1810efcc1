/** Compares the driver's volumes with PersistentVolumes and the intent journal. A finding must hold in two looks. */
import { verifyMissing } from './driver-volumes.ts';
import { type Finding, findingKey, type FindingState } from './finding.ts';
import { type Look, look, type LookOptions } from './look.ts';
import { driverVolume } from './strangers.ts';

export interface AuditOptions extends LookOptions {
  /** Pause before the second look, in milliseconds. 0: there is none. */
  secondLookMs: number;
}

/** The last look, with what was found in all of them. */
export interface Audit extends Look {
  looks: 1 | 2;
  /** Findings of one look alone: volumes that were being created, deleted or saved. */
  unsettled: number;
}

/** Interval at which the progress line counts down, in milliseconds. */
const countdownMs = 1000;

/**
 * Looks, and if there are findings looks again later. Changes nothing; safe to repeat.
 *
 * @throws as `look`.
 */
export async function audit(options: AuditOptions): Promise<Audit> {
  const found = await settled(options);
  await addDriverFacts(found.findings, options);
  return found;
}

async function settled(options: AuditOptions): Promise<Audit> {
  const { secondLookMs } = options;
  const first = await look(options);
  if (secondLookMs <= 0 || first.findings.length === 0) return { ...first, looks: 1, unsettled: 0 };
  await pause(options);
  return confirmed(first, await look(options));
}

/** The second look, with what the first one has found as well. */
export function confirmed(first: Look, second: Look): Audit {
  const before = new Set(first.findings.map(findingKey));
  const findings = second.findings.filter((finding) => before.has(findingKey(finding)));
  const unsettled = before.size + second.findings.length - 2 * findings.length;
  return { ...second, findings, looks: 2, unsettled };
}

async function pause({ secondLookMs, progress, clock, signal }: AuditOptions): Promise<void> {
  const endMs = clock.monotonicMs() + secondLookMs;
  for (let leftMs = secondLookMs; leftMs > 0; leftMs = endMs - clock.monotonicMs()) {
    progress.at(`Checking the findings again in ${Math.ceil(leftMs / 1000)} s`);
    await clock.sleep(Math.min(countdownMs, leftMs), { signal });
  }
}

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
