/** The API server is paused: its connections stay open, and no request gets a response. */
import { setTimeout as delay } from 'node:timers/promises';
import { leaseName } from '../../src/run/lock-name.ts';
import { silentLogger } from '../../src/base/logger.ts';
import { NotFoundError } from '../../src/kube/client/api-error.ts';
import { type Lease, leases } from '../../src/kube/election/lease-record.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import { type Measured, share } from './goals.ts';
import { type Driver, openGreyStage, type Run, type SidecarOptions, type GreyStage } from './stage.ts';

/** The default of --leader-election-retry-period, in milliseconds: how often a leader renews. */
const retryPeriodMs = 5000;
/**
 * More than the default of --leader-election-renew-deadline, in milliseconds: leaders that could not renew have given
 * up.
 */
const settleMs = 12_000;

/** A sidecar that leads. */
export interface Leader {
  driver: Driver;
  process: StartedProcess;
  holder: string | null | undefined;
  transitions: number;
}

/** Starts a sidecar and waits until it leads. */
export async function startLeader(
  stage: GreyStage,
  driver: Driver,
  { flags = [], ...options }: SidecarOptions = {},
): Promise<Leader> {
  const before = await readLease(stage, driver);
  const process = await stage.start({ ...options, driver, flags: ['--leader-election', ...flags] });
  const { holderIdentity, leaseTransitions } = await eventually(
    async () => {
      const spec = await readLease(stage, driver);
      if (!spec?.holderIdentity || spec.holderIdentity === before?.holderIdentity) throw new Error('it does not lead');
      return spec;
    },
    { hopeless: () => (process.running() ? undefined : process.log().slice(-500)) },
  );
  return { driver, process, holder: holderIdentity, transitions: leaseTransitions ?? 0 };
}

/** Whether the leader runs, has led without interruption, and has renewed its Lease since a time. */
export async function leadsOn(stage: GreyStage, leader: Leader, sinceMs: number): Promise<boolean> {
  const { holderIdentity, leaseTransitions, renewTime } = (await readLease(stage, leader.driver)) ?? {};
  return (
    leader.process.running() &&
    holderIdentity === leader.holder &&
    (leaseTransitions ?? 0) === leader.transitions &&
    Date.parse(renewTime ?? '') > sinceMs
  );
}

/** How many leaders survive pauses of the API server, in several phases of their renewals. */
export async function standingServer(run: Run): Promise<Measured[]> {
  const phases = run.short ? 3 : 7;
  const pausesMs = run.short ? [3000, 6000] : [3000, 6000, 9000];
  await using stage = await openGreyStage(run, { drivers: phases, stops: true });
  const { apiServer } = stage.cluster;
  let lived = 0;
  let leaders: Leader[] = [];
  for (const pauseMs of pausesMs) {
    leaders = await relead(stage, leaders);
    await delay(2000);
    apiServer?.standStill();
    await delay(pauseMs);
    apiServer?.goOn();
    const sinceMs = Date.now();
    await delay(settleMs);
    for (const leader of leaders) {
      if (await leadsOn(stage, leader, sinceMs)) lived++;
      else await leader.process.stop('SIGKILL');
    }
  }
  return [share(lived, phases * pausesMs.length)];
}

/** Starts a leader for each driver that has none, spread over the retry period. */
async function relead(stage: GreyStage, former: readonly Leader[]): Promise<Leader[]> {
  const starts = stage.drivers.map(async (driver, index) => {
    const leader = former[index];
    if (leader?.process.running() === true) return leader;
    await delay((retryPeriodMs / stage.drivers.length) * index);
    return await startLeader(stage, driver);
  });
  return await Promise.all(starts);
}

async function readLease({ client, cluster }: GreyStage, driver: Driver): Promise<Lease['spec']> {
  const name = leaseName(driver.name, silentLogger);
  try {
    return (await client.get<Lease>(leases, { namespace: cluster.sidecarNamespace, name })).spec;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
