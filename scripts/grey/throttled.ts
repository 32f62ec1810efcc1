/** Caches that must be listed again, in pages, while hundreds of requests wait for the client-side rate limit. */
import { setTimeout as delay } from 'node:timers/promises';
import { isWatch, type ApiProxy } from '../../test/support/api-proxy.ts';
import { type Measured, seconds } from './goals.ts';
import { openGreyStage, type Run } from './stage.ts';
import { createClaims, goodClass, startServing } from './tenants.ts';

/** --worker-threads: the number of claims for which a request may wait at a time. */
const workers = 350;
/** How long the caches may take, in seconds. */
const patienceS = 300;

/** @returns seconds until all caches are filled again. In order of arrival each page would wait for a minute. */
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
  return [seconds(await secondsToFill(proxy), patienceS)];
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
    if (passedS > patienceS) return Infinity;
    await delay(100);
  }
}
