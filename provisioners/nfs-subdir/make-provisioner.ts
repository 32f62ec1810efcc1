/** The provisioner with all that it works with, once this process leads. */
import type { ProvisionerParts } from '../../src/index.ts';
import { type ArchiveSweepOptions, sweepArchives } from './archives.ts';
import { Neighbours } from './neighbours.ts';
import { NfsSubdirProvisioner } from './nfs-subdir-provisioner.ts';
import { type PatientCalls, patienceMs } from './patient-calls.ts';
import { ownVolumes } from './own-volumes.ts';
import type { Settings } from './settings.ts';
import { Share } from './share.ts';
import { ShareGuard } from './share-guard.ts';
import { ShareProbe } from './share-probe.ts';
import { ShareWatch } from './share-watch.ts';

/** How long a process that was killed may still be making a directory, in milliseconds: later than that it is empty. */
export const maxCallMs = 15_000;

/**
 * @param life.calls - runs all work on the share.
 * @param life.running - aborts when the process ends.
 */
export function makeProvisioner(
  settings: Settings,
  parts: ProvisionerParts,
  { calls, running }: { calls: PatientCalls; running: AbortSignal },
): NfsSubdirProvisioner {
  const { client, volumes, volumesWith, clock, logger, synced, lockNotes, wakeVolume } = parts;
  const { provisionerName, sharePath, mountPoint } = settings;
  const own = { volumes, provisionerName, sharePath };
  const guard = new ShareGuard({
    mountPoint,
    notes: lockNotes,
    ownVolumes: () => ownVolumes(own),
    synced,
    clock,
    logger,
  });
  const share = new Share(mountPoint, guard);
  watchShare({ share, calls, mountPoint }, parts, running);
  void keepSweeping({ ...parts, share, calls }, running);
  const neighbours = new Neighbours({ ...own, volumes, clock, onFreed: wakeVolume });
  return new NfsSubdirProvisioner({ settings, share, calls, neighbours, client, clock, volumesWith, logger });
}

/** Pause between two searches for archives whose retention is over, in milliseconds. */
const sweepMs = 3_600_000;

/** Never rejects. Does not keep the process alive. */
async function keepSweeping(
  parts: ArchiveSweepOptions & Pick<ProvisionerParts, 'synced'>,
  running: AbortSignal,
): Promise<void> {
  const { synced, clock, logger } = parts;
  await synced;
  while (!running.aborted) {
    await sweepArchives(parts, running).catch((error: unknown) => {
      if (!running.aborted) logger.warn({ err: error }, 'Old archives could not be removed, trying again later');
    });
    await new Promise<void>((resolve) => clock.after(sweepMs, resolve));
  }
}

function watchShare(
  { share, calls, mountPoint }: { share: Share; calls: PatientCalls; mountPoint: string },
  parts: ProvisionerParts,
  running: AbortSignal,
): void {
  const { synced, registry, clock, logger } = parts;
  const probe = new ShareProbe({ mountPoint, patienceMs, clock });
  const watch = new ShareWatch({
    check: async (signal) => {
      calls.isSilent = !(await probe.responds());
      await calls.run((until) => share.check(until), signal, { isShort: true });
    },
    synced,
    onProblem: (problem) => void reportOnLock(problem, parts),
    onUsable: parts.retryFailed,
    registry,
    clock,
    logger,
  });
  parts.addReadiness(() => watch.problem);
  void watch.run(running);
}

/** On the lock, where an operator may check first; claims and volumes get events of their own once they are tried. */
async function reportOnLock(problem: string, { lockNotes, recorder, signal, logger }: ProvisionerParts): Promise<void> {
  try {
    const lock = await lockNotes?.reference(signal);
    if (lock !== undefined) recorder.event(lock, 'Warning', 'ShareUnusable', problem, { logged: true });
  } catch (error) {
    logger.debug({ err: error }, 'No event could be recorded on the lock');
  }
}
