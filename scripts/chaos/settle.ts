import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { sidecarCommand } from '../../test/support/sidecar-process.ts';
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

/** What `csi-provisioner audit` has made of the records that a run left. */
export interface Audited {
  /** Ids that it reported as leaked. */
  leaked: number;
  /** Those of them that it deleted. */
  deleted: number;
  /** What it said of the others. */
  refusals: string[];
  /** Storage that somebody uses or keeps, and that is gone now. */
  destroyed: string[];
}

interface Report {
  findings: { state: string; volumeId?: string }[];
  deletions: { volumeId: string; result: string; detail: string }[];
}

/** Secrets of namespaces that were deleted: all of a run are equal. */
const secretName = 'credentials';

/** Has audit delete everything that it reports as leaked, as an operator would, one id after the other. */
export async function deleteLeaked(setting: Setting): Promise<Audited> {
  const { findings } = await audit(setting, '--second-look=1s');
  const ids = new Set(findings.flatMap(({ state, volumeId }) => (state === 'leaked' ? [volumeId ?? ''] : [])));
  ids.delete('');
  const namespace = setting.load.namespace();
  let deleted = 0;
  const refusals: string[] = [];
  for (const id of ids) {
    const secret = ['--secret', `${namespace}/${secretName}`];
    const flags = ['--second-look=0', '--delete', id, '--yes'];
    let refusal = await refusalOf(setting, flags);
    if (refusal?.includes(secretName) === true) refusal = await refusalOf(setting, [...flags, ...secret]);
    if (refusal === undefined) deleted++;
    else refusals.push(`${id}: ${refusal}`);
  }
  const { destroyed } = count((await readOutcome(setting)).outcome);
  return { leaked: ids.size, deleted, refusals, destroyed };
}

/** @returns why a volume was not deleted; undefined: it was. */
async function refusalOf(setting: Setting, flags: readonly string[]): Promise<string | undefined> {
  try {
    const { deletions } = await audit(setting, ...flags);
    return deletions.find(({ result }) => result !== 'deleted')?.detail;
  } catch (error) {
    return (error as Error).message.trim();
  }
}

/** @throws when it prints no report. */
async function audit({ driver, world, options }: Setting, ...flags: string[]): Promise<Report> {
  const [command = '', ...words] = sidecarCommand();
  const journal = options.journal === undefined ? [] : [`--intent-journal=${options.journal}`];
  const connection = [`--csi-address=${driver.address}`, `--kubeconfig=${world.kubeconfig}`];
  const env = { ...process.env, KUBECONFIG: undefined, POD_NAMESPACE: world.cluster.sidecarNamespace };
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(
      command,
      [...words, 'audit', ...connection, ...journal, '-o', 'json', ...flags],
      { env, maxBuffer: 2 ** 28 },
      (_error, out, problems) => resolve({ stdout: out, stderr: problems }), // its exit code says what it found
    );
  });
  if (stdout === '') throw new Error(`audit printed nothing: ${stderr}`);
  return JSON.parse(stdout) as Report;
}
