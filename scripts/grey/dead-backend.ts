/** The server behind a load balancer dies silently: old connections stay open and hang, new ones work. */
import { setTimeout as delay } from 'node:timers/promises';
import { startBalancer, type TcpBalancer } from '../../test/support/tcp-balancer.ts';
import { type Measured, seconds, yesOrNo } from './goals.ts';
import { type Driver, openStage, type Run, type Stage } from './stage.ts';
import { leadsOn, startLeader } from './standing-server.ts';
import { secondsOf, startServing } from './tenants.ts';

const patienceS = 150;

/** Whether a leader keeps leading. */
export async function deadBackendOfLeader(run: Run): Promise<Measured[]> {
  await using stage = await openStage(run);
  await using balancer = await balancerOf(stage);
  const kubeconfig = await kubeconfigOf(stage, balancer);
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
  await using stage = await openStage(run, { drivers: 2 });
  const [young, old] = stage.drivers as [Driver, Driver];
  if (run.short) return [await servedAfter(stage, young, 10_000), undefined];
  return await Promise.all([servedAfter(stage, young, 10_000), servedAfter(stage, old, 90_000)]);
}

async function servedAfter(stage: Stage, driver: Driver, lifeMs: number): Promise<Measured> {
  await using balancer = await balancerOf(stage);
  const kubeconfig = await kubeconfigOf(stage, balancer);
  const className = driver.name;
  await startServing(stage, { className, driver, kubeconfig });
  await delay(lifeMs);
  balancer.silenceConnections();
  return seconds(
    await secondsOf(stage, { namespace: 'default', name: `late-${className}` }, { className, patienceS }),
    patienceS,
  );
}

async function balancerOf({ origin }: Stage): Promise<TcpBalancer> {
  return await startBalancer([Number(new URL(origin.url).port)]);
}

async function kubeconfigOf(stage: Stage, { port }: TcpBalancer): Promise<string> {
  const url = new URL(stage.origin.url);
  return await stage.kubeconfigAt(`${url.protocol}//${url.hostname}:${port}`);
}
