import { setTimeout as delay } from 'node:timers/promises';
import type { Administrator } from './administrator.ts';
import { failApi } from './api-faults.ts';
import type { ClaimLoad } from './claim-load.ts';
import type { ChaosDriver } from './driver.ts';
import type { ChaosOptions, Disturbance } from './options.ts';
import type { Random } from './random.ts';
import type { World } from './world.ts';

/** About what a round takes, in milliseconds: the start of a process and its life. */
const roundMs = 1100;
/** What is restarted works for so long on average before it is killed again, in milliseconds. */
const restartPauseMs = 12_000;

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
  const restart = (name: Disturbance, share: number, maxMs: number, act: () => Promise<unknown>): Promise<void> => {
    const everyMs = every(share, maxMs);
    return own(name, everyMs, async () => (load.paused ? undefined : act()), Math.max(everyMs, restartPauseMs));
  };
  await Promise.all([
    own('driver', 250, (stream) => driver.misbehave(stream, { isLate: options.disturbances.has('late') })),
    restart('driver-restart', 0.3, 20_000, () => driver.restart()),
    own('api', 700, (stream) => failApi(world.url, stream)),
    restart('api-restart', 0.5, 30_000, () => world.restartApi()),
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
