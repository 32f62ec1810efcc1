/** How claims in great number affect a sidecar: those of a tenant the claims of others, those of another driver its memory. */
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject, Resource } from '../../src/kube/kube-object.ts';
import { type ApiProxy, isWatch } from '../../test/support/api-proxy.ts';
import { cpuMs, peakMb } from '../process-usage.ts';
import { count, type Measured, megabytes, seconds, yesOrNo } from './goals.ts';
import { type GreyStage, openGreyStage, type Run, type SidecarOptions } from './stage.ts';
import { createClaims, goodClass, secondsOf, startServing } from './tenants.ts';

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

/** The image's limit of 70 %, for a container with 512 MiB. */
const heapLimit = '--max-old-space-size=358';

/** The annotations of each claim; the API server allows 256 KiB. */
const annotations = { 'example.com/note': 'x'.repeat(240_000) };

/** Large claims of another driver, and little memory. @returns peak memory of the sidecar, and whether it serves a claim. */
export async function strangers(run: Run): Promise<Measured[]> {
  const [before, meanwhile] = run.short ? [300, 100] : [1500, 100];
  await using stage = await openGreyStage(run);
  const [namespace, className] = ['strangers', 'of-another-driver'];
  await stage.createNamespace(namespace);
  await stage.createClass(className, 'another.csi.example.com');
  const load = { namespace, className, annotations };
  await createClaims(stage, { ...load, name: 'before', claims: before });
  const command = run.candidate.command.replace(/--max-old-space-size-percentage=\d+/, heapLimit);
  const sidecar = await startServing(stage, { command });
  await createClaims(stage, { ...load, name: 'meanwhile', claims: meanwhile });
  await delay(5000);
  const waitedS = await secondsOf(
    stage,
    { namespace: 'default', name: 'last' },
    { className: goodClass, patienceS: 60 },
  );
  const served = sidecar.running() && waitedS < Infinity;
  return [megabytes(sidecar.running() ? peakMb(sidecar.pid) : Infinity), yesOrNo(served)];
}

/** --worker-threads: the number of claims for which a request may wait at a time. */
const workers = 350;
/** How long the caches may take, in seconds. */
const fillPatienceS = 300;

/**
 * Caches that must be listed again, in pages, while hundreds of requests wait for the client-side rate limit.
 *
 * @returns seconds until all caches are filled again. In order of arrival each page would wait for a minute.
 */
export async function throttled(run: Run): Promise<Measured[]> {
  const claims = run.short ? 400 : 700;
  await using stage = await openGreyStage(run);
  const { proxy, kubeconfig } = await stage.proxy();
  proxy.decide = ({ query }) => (query.has('sendInitialEvents') ? { code: 422, reason: 'Invalid' } : 'pass');
  // With the journal most claims would wait for its writes instead of sending their own requests.
  const journal = run.candidate.name === 'ours' ? ['--intent-journal=off'] : [];
  const flags = ['--kube-api-qps=5', '--kube-api-burst=10', `--worker-threads=${workers}`, ...journal];
  await startServing(stage, { kubeconfig, flags });
  await createClaims(stage, { namespace: 'default', name: 'waiting', claims, className: goodClass });
  await delay(5000);
  return [seconds(await secondsToFill(proxy), fillPatienceS)];
}

/** Ends all watches and expires their versions. @returns seconds until each is open again, after a list. */
async function secondsToFill(proxy: ApiProxy): Promise<number> {
  const expired = new Set(proxy.watched());
  const awaited = new Set(expired);
  const streams = proxy.decide;
  proxy.decide = (request) => {
    const { path, query } = request;
    // Only lists without a resource version are paginated.
    if (!isWatch(query) && query.get('resourceVersion')) return { code: 410, reason: 'Expired' };
    if (!isWatch(query) || query.has('sendInitialEvents')) return streams(request);
    if (expired.delete(path)) return { code: 410, reason: 'Expired' };
    awaited.delete(path);
    return 'pass';
  };
  proxy.endWatches();
  const startedMs = performance.now();
  for (;;) {
    const passedS = (performance.now() - startedMs) / 1000;
    if (awaited.size === 0) return passedS;
    if (passedS > fillPatienceS) return Infinity;
    await delay(100);
  }
}
