import { setTimeout as delay } from 'node:timers/promises';
import type { Bench } from './bench.ts';
import type { Check, Findings } from './check.ts';
import { cleanUp } from './clean-up.ts';
import { CheckSkipped } from './outcome.ts';

const pollMs = 250;
/** Some drivers go on deleting after their answer. */
const patienceMs = 3000;

export const leakChecks: readonly Check[] = [
  {
    id: 'leak',
    title: 'everything that was created is gone after its deletion',
    section: 'DeleteVolume',
    part: 'answers',
    async run(bench, findings) {
      if (bench.ledger.made.length === 0) throw new CheckSkipped('no volume was created');
      const probe = await bench.call('Probe');
      if (!probe.ok && probe.code === 'UNAVAILABLE') throw new CheckSkipped('the driver is no longer running');
      for (const text of await cleanUp(bench)) findings.fail(text);
      if (bench.facts.controller.has('LIST_VOLUMES')) await leftInList(bench, findings);
      else await leftByLookup(bench, findings);
    },
  },
];

async function leftInList(bench: Bench, findings: Findings): Promise<void> {
  if (bench.listedBefore === undefined) throw new CheckSkipped('ListVolumes failed at the start');
  const left = await settled(() => bench.leftInList());
  const deleted = left.filter((id) => bench.ledger.everMade.has(id));
  const unknown = left.filter((id) => !bench.ledger.everMade.has(id));
  if (deleted.length > 0) findings.fail(`deleted with OK, but still listed: ${some(deleted)}`);
  if (unknown.length > 0)
    findings.fail(
      `listed now but not before the run, and never returned by CreateVolume: ${some(unknown)}`,
      'CreateVolume',
    );
}

/** Without a list, a volume that is gone is one that nobody finds. */
async function leftByLookup(bench: Bench, findings: Findings): Promise<void> {
  const found = async (id: string): Promise<boolean> => {
    const answer = await bench.call('ValidateVolumeCapabilities', {
      volume_id: id,
      volume_capabilities: [bench.capability()],
      secrets: bench.options.secrets,
    });
    return answer.ok || answer.code !== 'NOT_FOUND';
  };
  if (await found('csi-sandbox-no-volume')) {
    throw new CheckSkipped(
      'it cannot be checked: there is no LIST_VOLUMES, and ValidateVolumeCapabilities finds any id',
    );
  }
  const left = await settled(async () => {
    const gone = [...bench.ledger.everMade].filter((id) => !bench.ledger.volumes.has(id));
    const there = await Promise.all(gone.map(async (id) => ((await found(id)) ? [id] : [])));
    return there.flat();
  });
  if (left.length > 0) findings.fail(`deleted with OK, but ValidateVolumeCapabilities still finds: ${some(left)}`);
}

/** Reads until nothing is left, for a while. */
export async function settled(read: () => Promise<string[]>): Promise<string[]> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const left = await read();
    if (left.length === 0 || Date.now() > end) return left;
    await delay(pollMs);
  }
}

export function some(ids: readonly string[]): string {
  const shown = ids.slice(0, 5).join(', ');
  return ids.length > 5 ? `${shown} and ${ids.length - 5} more` : shown;
}
