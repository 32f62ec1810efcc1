import { setTimeout as delay } from 'node:timers/promises';
import type { FaultAction, FaultMatch } from '../../sandbox/api/faults.ts';
import type { Administrator } from './administrator.ts';
import type { ClaimLoad } from './claim-load.ts';
import type { ChaosDriver } from './driver.ts';
import type { ChaosOptions, Disturbance } from './options.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** About what a round takes, in milliseconds: the start of a process and its life. */
export const roundMs = 1100;
/** A driver that was restarted works for so long on average before it is killed again, in milliseconds. */
const driverPauseMs = 12_000;

export interface Surroundings {
  options: ChaosOptions;
  world: World;
  driver: ChaosDriver;
  load: ClaimLoad;
  administrator: Administrator;
  random: Random;
  signal: AbortSignal;
}

/** All disturbances that go on beside the kills; short runs have each of them, too. */
export async function disturb({
  options,
  world,
  driver,
  load,
  administrator,
  random,
  signal,
}: Surroundings): Promise<void> {
  const spanMs = options.kills * roundMs;
  const every = (share: number, maxMs: number): number => Math.max(3000, Math.min(maxMs, spanMs * share));
  const own = (
    name: Disturbance,
    everyMs: number,
    act: (random: Random) => Promise<unknown>,
    laterMs = everyMs,
  ): Promise<void> => {
    const stream = random.stream(name);
    if (!options.disturbances.has(name)) return Promise.resolve();
    return atIntervals({ random: stream, firstMs: everyMs, everyMs: laterMs, signal }, () => act(stream));
  };
  const restart = (
    name: Disturbance,
    { firstMs, everyMs }: { firstMs: number; everyMs: number },
    act: () => Promise<unknown>,
  ): Promise<void> => own(name, firstMs, async () => (load.paused ? undefined : act()), everyMs);
  const driverMs = every(0.3, 20_000);
  const { apiRestartMs } = options;
  await Promise.all([
    own('driver', 250, (stream) =>
      driver.misbehave(stream, { isLate: options.disturbances.has('late'), timeoutMs: options.timeoutMs }),
    ),
    restart('driver-restart', { firstMs: driverMs, everyMs: Math.max(driverMs, driverPauseMs) }, () =>
      driver.restart(),
    ),
    own('api', 700, (stream) => failApi(world.origin.url, stream)),
    restart('api-restart', { firstMs: every(0.5, apiRestartMs), everyMs: apiRestartMs }, () => world.restartApi()),
    own('admin', 1500, async () => (load.paused ? undefined : administrator.act(1))),
    own('namespaces', every(0.4, 120_000), () => load.deleteNamespace()),
    own('classes', every(0.15, 6000), () => load.recreateClass()),
  ]);
}

/** Repeats `act` with pauses that are drawn around so many milliseconds, until the signal aborts. */
async function atIntervals(
  { random, firstMs, everyMs, signal }: { random: Random; firstMs: number; everyMs: number; signal: AbortSignal },
  act: () => Promise<unknown>,
): Promise<void> {
  for (let pauseMs = firstMs; ; pauseMs = everyMs) {
    try {
      await delay(random.between(0.5, 1.5) * pauseMs, undefined, { signal });
    } catch {
      return;
    }
    await act();
  }
}

const volumeWrites: FaultMatch[] = [
  { verb: 'create', resource: 'persistentvolumes' },
  { verb: 'patch', resource: 'persistentvolumes' },
  { verb: 'delete', resource: 'persistentvolumes' },
];
const reads: FaultMatch[] = [{ verb: 'get' }, { verb: 'list' }];
const leaseWrites: FaultMatch[] = [
  { verb: 'update', resource: 'leases' },
  { verb: 'create', resource: 'leases' },
  { verb: 'get', resource: 'leases' },
];
const all: FaultMatch[] = [{}];

const requestFaults: FaultAction[] = [
  { type: 'status', code: 500 },
  { type: 'status', code: 503 },
  { type: 'status', code: 429, retryAfter: 1 },
  { type: 'delay', ms: 1500 },
  { type: 'dropBefore' },
  { type: 'dropAfter' },
  { type: 'dropAfter' },
  { type: 'conflictOnce' },
];
const watchFaults: FaultAction[] = [
  { type: 'watchDelay', ms: 1000 },
  { type: 'watchDuplicate' },
  { type: 'watchStall' },
  { type: 'watchCut', afterEvents: 5, how: 'reset' },
];

/** Makes the sandbox's API server fail for the sidecar, and nobody else, for up to two seconds. */
async function failApi(url: string, random: Random): Promise<void> {
  const toWatches = random.chance(0.3);
  const match = toWatches
    ? { watch: true }
    : random.pick([...volumeWrites, ...leaseWrites, ...leaseWrites, ...reads, ...all]);
  const action = random.pick(toWatches ? watchFaults : requestFaults);
  const probability = random.pick([0.3, 0.7, 1]);
  const forMs = random.between(100, 2000);
  const rule = { match: { ...match, userAgent: 'csi-provisioner' }, action, probability };
  const headers = { 'content-type': 'application/json' };
  try {
    const response = await fetch(`${url}/embedded/faults`, { method: 'POST', headers, body: JSON.stringify(rule) });
    if (!response.ok) throw new Error(`the fault was refused: ${await response.text()}`);
    const { id } = (await response.json()) as { id: number };
    await delay(forMs);
    await fetch(`${url}/embedded/faults/${id}`, { method: 'DELETE' });
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // fetch's: the server is being restarted, and forgets its faults
  }
}
