/** The API server is paused, or dies silently behind a load balancer: its connections stay open, and no request gets a response. */
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '../../src/base/logger.ts';
import { NotFoundError } from '../../src/kube/client/api-error.ts';
import { type Lease, leases } from '../../src/kube/election/lease-record.ts';
import { leaseName } from '../../src/run/lock-name.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import { type Measured, seconds, share, yesOrNo } from './goals.ts';
import { type Driver, type GreyStage, openGreyStage, type Run, type SidecarOptions } from './stage.ts';
import { secondsOf, startServing } from './tenants.ts';

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

const patienceS = 150;

/** Whether a leader keeps leading. */
export async function deadBackendOfLeader(run: Run): Promise<Measured[]> {
  await using stage = await openGreyStage(run);
  const { balancer, kubeconfig } = await stage.balancer();
  const leader = await startLeader(stage, stage.drivers[0]!, { kubeconfig });
  await delay(6000); // it renews
  balancer.silenceConnections();
  // Longer than a lease lasts, so that the renewals of the last seconds went over new connections.
  await delay(run.short ? 25_000 : 45_000);
  return [yesOrNo(await leadsOn(stage, leader, Date.now() - 12_000))];
}

/**
 * How long a claim waits, without election: once with young watches, and once with watches that have received
 * bookmarks.
 */
export async function deadBackend(run: Run): Promise<(Measured | undefined)[]> {
  await using stage = await openGreyStage(run, { drivers: 2 });
  const [young, old] = stage.drivers as [Driver, Driver];
  if (run.short) return [await servedAfter(stage, young, 10_000), undefined];
  return await Promise.all([servedAfter(stage, young, 10_000), servedAfter(stage, old, 90_000)]);
}

async function servedAfter(stage: GreyStage, driver: Driver, lifeMs: number): Promise<Measured> {
  const { balancer, kubeconfig } = await stage.balancer();
  const className = driver.name;
  await startServing(stage, { className, driver, kubeconfig });
  await delay(lifeMs);
  balancer.silenceConnections();
  return seconds(
    await secondsOf(stage, { namespace: 'default', name: `late-${className}` }, { className, patienceS }),
    patienceS,
  );
}
