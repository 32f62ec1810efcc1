import { setTimeout as delay } from 'node:timers/promises';
import type { Administrator } from './administrator.ts';
import type { ClaimLoad } from './claim-load.ts';
import { count, type Findings, isClean, type Outcome } from './count.ts';
import { type ChaosDriver, longestCallMs } from './driver.ts';
import { readJournal } from './journal-records.ts';
import type { ChaosOptions } from './options.ts';
import { plainLife, type Sidecars } from './sidecars.ts';
import { insist, readNow, type World } from './world.ts';

/** All that takes part in a run. */
export interface Setting {
  options: ChaosOptions;
  world: World;
  driver: ChaosDriver;
  load: ClaimLoad;
  administrator: Administrator;
  sidecars: Sidecars;
}

/** Waits until nothing is wrong, or nothing changes any more. @param onRead - gets what each read has found. */
export async function settled(setting: Setting, onRead: (findings: Findings) => void): Promise<Findings> {
  const { options, sidecars } = setting;
  await delay(longestCallMs(options.timeoutMs));
  let [last, lastText, sinceMs, clean] = [await readOutcome(setting), '', performance.now(), 0];
  for (;;) {
    const findings = count(last.outcome);
    onRead(findings);
    clean = isClean(findings) ? clean + 1 : 0;
    if (clean === 3) return findings;
    const text = JSON.stringify(last.outcome.stored.length) + JSON.stringify(findings);
    if (text !== lastText) [lastText, sinceMs] = [text, performance.now()];
    // A record of a process that was killed is left alone for half a minute without an election; after a save that was aborted
    // nothing is deleted for 65 s.
    const quietMs = (!last.journaled ? 8000 : options.election ? 80_000 : 110_000) + 3 * options.timeoutMs;
    if (performance.now() - sinceMs > quietMs) return findings;
    await delay(1000);
    if (!(await sidecars.working())) {
      await sidecars.end('SIGKILL');
      await sidecars.start({ ...plainLife, journal: options.journal });
      if (await sidecars.working()) sinceMs = performance.now();
    }
    last = await readOutcome(setting);
  }
}

export async function readOutcome({
  world,
  driver,
  load,
  administrator,
}: Setting): Promise<{ outcome: Outcome; journaled: boolean }> {
  // The driver first: what comes later is a volume that has got its holder meanwhile, never the other way round.
  const [stored, deletions] = [await driver.stored(), await driver.deletions()];
  const records = await insist(() => readJournal(world.client, world.cluster.sidecarNamespace));
  const now = await readNow(world);
  const volumes = now.volumes.filter(({ name }) => !administrator.withdrawn.has(name));
  return {
    journaled: records !== undefined,
    outcome: {
      claims: load.created,
      found: now.found,
      volumes,
      stored,
      records: records ?? [],
      deletions,
      kept: administrator.kept,
    },
  };
}
