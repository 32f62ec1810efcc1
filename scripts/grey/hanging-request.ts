/** SIGTERM while a request to the API server gets no response. */
import { setTimeout as delay } from 'node:timers/promises';
import { silentLogger } from '../../src/base/logger.ts';
import { leaseName } from '../../src/run/lock-name.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { ProxiedRequest } from '../../test/support/api-proxy.ts';
import { type Measured, nothing, seconds } from './goals.ts';
import { type Driver, openGreyStage, type Run, type GreyStage } from './stage.ts';
import { startLeader } from './standing-server.ts';
import { startServing } from './tenants.ts';

/** How long a request, and then the end of the process, is waited for, in seconds. */
const [requestPatienceS, endPatienceS] = [30, 60];

interface Kind {
  name: string;
  matches: (request: ProxiedRequest, lock: string) => boolean;
  /** The claim that makes the sidecar send the request; none is needed for the Lease. */
  claim: 'plain' | 'large' | 'clone' | 'none';
}

const isOne = (path: string, plural: string): boolean => path.includes(`/${plural}/`);
const isJournal = (path: string, lock: string): boolean => isOne(path, 'leases') && path.includes(`${lock}-journal`);

const kinds: readonly Kind[] = [
  {
    name: 'volume POST',
    matches: ({ method, path }) => method === 'POST' && path.endsWith('/persistentvolumes'),
    claim: 'plain',
  },
  {
    name: 'claim GET',
    matches: ({ method, path }) => method === 'GET' && isOne(path, 'persistentvolumeclaims'),
    claim: 'large',
  },
  {
    name: 'claim PUT',
    matches: ({ method, path }) => ['PUT', 'PATCH'].includes(method) && isOne(path, 'persistentvolumeclaims'),
    claim: 'clone',
  },
  { name: 'event POST', matches: ({ method, path }) => method === 'POST' && path.endsWith('/events'), claim: 'plain' },
  {
    name: 'Lease PUT',
    matches: ({ method, path }, lock) => method === 'PUT' && path.endsWith(`/leases/${lock}`),
    claim: 'none',
  },
  {
    name: 'journal PUT',
    matches: ({ method, path }, lock) => method === 'PUT' && isJournal(path, lock),
    claim: 'plain',
  },
];

/** Seconds until the process ends, for a hanging request of each kind; one sidecar for each, all at the same time. */
export async function hangingRequests(run: Run): Promise<Measured[]> {
  await using stage = await openGreyStage(run, { drivers: kinds.length });
  return await Promise.all(kinds.map(async (kind, index) => endAfter(stage, kind, stage.drivers[index]!)));
}

/** As in the lines of the table. */
export const kindNames: readonly string[] = kinds.map(({ name }) => name);

async function endAfter(stage: GreyStage, kind: Kind, driver: Driver): Promise<Measured> {
  const { proxy, kubeconfig } = await stage.proxy();
  const lock = leaseName(driver.name, silentLogger);
  const className = lock;
  const process =
    kind.claim === 'none'
      ? (await startLeader(stage, driver, { kubeconfig })).process
      : await startServing(stage, { className, driver, kubeconfig });
  await delay(2000); // the requests for the first claim are over
  proxy.decide = (request) => (kind.matches(request, lock) ? 'hold' : 'pass');
  if (kind.claim !== 'none') await ask(stage, kind.claim, className);
  const hangs = eventually(() => proxy.held > 0 || missing(kind), { withinMs: requestPatienceS * 1000 });
  if (!(await hangs.catch(() => false))) return nothing('no such request');
  await delay(500);
  const startedMs = performance.now();
  await Promise.race([process.stop('SIGTERM'), delay(endPatienceS * 1000, undefined, { ref: false })]);
  return seconds(process.running() ? Infinity : (performance.now() - startedMs) / 1000, endPatienceS);
}

function missing({ name }: Kind): never {
  throw new Error(`no ${name} has come`);
}

async function ask(stage: GreyStage, claim: Exclude<Kind['claim'], 'none'>, className: string): Promise<void> {
  await stage.createClaim({ name: `asked-${className}` }, className, {
    ...(claim === 'large' && { annotations: { 'example.com/note': 'x'.repeat(20_000) } }),
    ...(claim === 'clone' && { dataSource: { kind: 'PersistentVolumeClaim', name: `first-${className}` } }),
  });
}
