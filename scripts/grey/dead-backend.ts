/** The server behind a load balancer dies silently: old connections stay open and hang, new ones work. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Measured, seconds, yesOrNo } from './goals.ts';
import { type Driver, openGreyStage, type Run, type GreyStage } from './stage.ts';
import { leadsOn, startLeader } from './standing-server.ts';
import { secondsOf, startServing } from './tenants.ts';

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
