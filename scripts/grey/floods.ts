/** How the claims of one tenant affect those of another. */
import { setTimeout as delay } from 'node:timers/promises';
import { cpuMs } from '../process-usage.ts';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import { count, type Measured, seconds } from './goals.ts';
import { openGreyStage, type Run, type SidecarOptions, type GreyStage } from './stage.ts';
import { createClaims, secondsOf, startServing } from './tenants.ts';

const patienceS = 120;
const good = 'good-tenant';
const badClass = 'bad';

const events: Resource = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

interface CoreEvent extends KubeObject {
  source?: { component?: string };
  reportingComponent?: string;
}

/** Claims that fail immediately. @returns seconds of the good claim, CPU seconds, event writes. */
export async function flood(run: Run): Promise<Measured[]> {
  const claims = run.short ? 1000 : 4000;
  const windowMs = run.short ? 15_000 : 60_000;
  await using stage = await openGreyStage(run);
  const { pid } = await prepared(stage, { failAfterMs: '0' }, ['bad-tenant']);
  const written = await countEvents(stage);
  const cpuBefore = cpuMs(pid);
  const window = delay(windowMs).then(() => [seconds((cpuMs(pid) - cpuBefore) / 1000), count(written())]);
  await createClaims(stage, { namespace: 'bad-tenant', name: 'bad', claims, className: badClass });
  const worst = await goodSeconds(stage, run.short ? [0, 5000] : [0, 15_000, 15_000]);
  return [seconds(worst, patienceS), ...(await window)];
}

/** Claims that fail after a second each. @returns seconds of the good claim. */
export async function slowFailures(run: Run): Promise<Measured[]> {
  await using stage = await openGreyStage(run);
  await prepared(stage, { failAfterMs: '1000' }, ['bad-tenant']);
  const claims = run.short ? 2000 : 5000; // many times the number of workers
  await createClaims(stage, { namespace: 'bad-tenant', name: 'bad', claims, className: badClass });
  return [seconds(await goodSeconds(stage, run.short ? [0] : [0, 10_000, 10_000]), patienceS)];
}

/** Claims of two tenants whose calls hang for longer than the scenario takes. @returns seconds of the good claim. */
export async function hangingCalls(run: Run): Promise<Measured[]> {
  await using stage = await openGreyStage(run);
  const tenants = ['bad-tenant', 'other-bad-tenant'];
  await prepared(stage, { hangMs: '150000' }, tenants, { flags: ['--timeout=150s'] });
  const claims = run.short ? 150 : 300; // of each tenant, more than there are workers by default
  const loads = tenants.map((namespace) =>
    createClaims(stage, { namespace, name: 'bad', claims, className: badClass }),
  );
  await Promise.all(loads);
  return [seconds(await goodSeconds(stage, run.short ? [2000] : [10_000, 10_000]), patienceS)];
}

/** Starts a sidecar, and creates the tenants' namespaces and the class of the claims that fail or hang. */
async function prepared(
  stage: GreyStage,
  parameters: Record<string, string>,
  tenants: readonly string[],
  options: SidecarOptions = {},
): Promise<{ pid: number }> {
  for (const name of [...tenants, good]) await stage.createNamespace(name);
  await stage.createClass(badClass, stage.drivers[0]?.name ?? '', { parameters });
  const sidecar = await startServing(stage, options);
  await delay(3000); // the load of the start is over
  return sidecar;
}

/** The longest wait of the good claims, in seconds; each is created after a pause, once the one before is bound. */
async function goodSeconds(stage: GreyStage, pausesMs: readonly number[]): Promise<number> {
  let worst = 0;
  for (const [index, pauseMs] of pausesMs.entries()) {
    await delay(pauseMs);
    worst = Math.max(worst, await secondsOf(stage, { namespace: good, name: `good-${index}` }, { patienceS }));
    if (worst === Infinity) break;
  }
  return worst;
}

/** Counts creations and changes of events about claims, other than the cluster's own. */
async function countEvents(stage: GreyStage): Promise<() => number> {
  let [written, listed] = [0, false];
  await stage.watch<CoreEvent>(events, ({ source, reportingComponent }, isGone) => {
    const by = source?.component ?? reportingComponent;
    if (listed && !isGone && by !== 'persistentvolume-controller') written++;
  });
  listed = true;
  return () => written;
}
