import { appendFileSync, cpSync } from 'node:fs';
import path from 'node:path';
import { logFile } from '../../test/support/stage.ts';
import { showing } from '../terminal-progress.ts';
import { Administrator } from './administrator.ts';
import { deleteLeaked, type Audited, settled } from './settle.ts';
import { ClaimLoad } from './claim-load.ts';
import type { Findings } from './count.ts';
import { disturb } from './disturb.ts';
import { ChaosDriver } from './driver.ts';
import type { ChaosOptions } from './options.ts';
import { Random } from './random.ts';
import { Rounds } from './rounds.ts';
import { plainLife, Sidecars } from './sidecars.ts';
import { openWorld } from './world.ts';

export interface ChaosReport {
  findings: Findings;
  claims: number;
  unwanted: number;
  kills: number;
  /** How the sidecars ended, and how often. */
  endings: ReadonlyMap<string, number>;
  chaosMs: number;
  settledMs: number;
  /** Storage that the administrator kept. */
  kept: number;
  /** Restarts of the API server, which forgets its history. */
  apiRestarts: number;
  audit: Audited;
}

/** Flags that make a run short: pauses of a few seconds at most. */
const hurried = ['--retry-interval-start=500ms', '--retry-interval-max=3s'];
const election = [
  '--leader-election',
  '--leader-election-lease-duration=3s',
  '--leader-election-renew-deadline=2s',
  '--leader-election-retry-period=500ms',
];

/** One run, from an empty cluster to the count. @throws when something else fails than what is to fail. */
export async function runChaos(
  options: ChaosOptions & { logFolder: string },
  say: (text: string) => void,
): Promise<ChaosReport> {
  const { logFolder } = options;
  await using world = await openWorld(options.cluster, logFile(logFolder, 'sidecars.log'));
  const driver = await ChaosDriver.start(world.folder, 'chaos.csi.example.com');
  world.defer(async () => {
    const calls = await driver.stop();
    cpSync(calls, path.join(logFolder, 'driver-calls.jsonl'));
    appendFileSync(path.join(logFolder, 'driver.log'), driver.log());
    appendFileSync(path.join(logFolder, 'cluster.log'), world.cluster.log());
  });
  const sidecars = new Sidecars(world, {
    csiAddress: driver.address,
    flags: [`--timeout=${options.timeoutMs}ms`, ...hurried, ...(options.election ? election : [])],
    pods: options.together ? 'together' : options.election ? 'in turn' : 'one',
  });
  const random = new Random(options.seed);
  const load = new ClaimLoad({
    stage: world,
    driverName: driver.driverName,
    random: random.stream('claims'),
    deletions: options.disturbances.has('deletions'),
  });
  await load.begin();
  const administrator = new Administrator({
    world,
    load,
    random: random.stream('admin'),
    hasOther: options.disturbances.has('other'),
  });

  const startedMs = performance.now();
  const stop = new AbortController();
  const around = disturb({ options, world, driver, load, administrator, random, signal: stop.signal });
  const rounds = new Rounds({ options, world, sidecars, load, administrator, random: random.stream('rounds') });
  const running = rounds.run(stop.signal);
  try {
    const state = (): string =>
      `${rounds.kills} of ${options.kills} kills, ${load.created.length} of ${options.claims} claims`;
    await showing(state, () => Promise.race([running, around]));
  } finally {
    stop.abort();
    await Promise.allSettled([running, around, load.end()]);
  }
  const [kills] = await Promise.all([running, around]);
  const chaosMs = performance.now() - startedMs;

  say(`${kills} kills are done after ${secondsText(chaosMs)}; everything works now, and must settle`);
  await driver.behave();
  await sidecars.end('SIGKILL');
  await sidecars.start({ ...plainLife, journal: options.journal });
  let state = 'settling';
  const setting = { options, world, driver, load, administrator, sidecars };
  const findings = await showing(
    () => state,
    () => settled(setting, (now) => (state = `settling: ${findingsText(now)}`)),
  );
  const settledMs = performance.now() - startedMs - chaosMs;
  const audit = await showing(
    () => 'audit deletes what is leaked',
    async () => deleteLeaked(setting),
  );
  return {
    findings,
    claims: load.created.length,
    unwanted: load.created.filter(({ unwantedMs }) => unwantedMs !== undefined).length,
    kills,
    endings: sidecars.endings,
    chaosMs,
    settledMs,
    kept: administrator.kept.length,
    apiRestarts: world.apiRestarts(),
    audit,
  };
}

/** As `2 leaked, 0 lost`. */
function findingsText(findings: Findings): string {
  return (Object.entries(findings) as [string, string[]][]).map(([name, list]) => `${list.length} ${name}`).join(', ');
}

export function secondsText(ms: number): string {
  return `${(ms / 1000).toFixed(0)} s`;
}
