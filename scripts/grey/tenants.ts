import { setTimeout as delay } from 'node:timers/promises';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '../../src/provision/objects.ts';
import { inParallel } from '../../test/support/stage.ts';
import type { StartedProcess } from '../../test/support/started-process.ts';
import type { SidecarOptions, GreyStage } from './stage.ts';

/** Max concurrent requests of the administrator. */
const width = 20;
/** How long the first claim of a sidecar may wait, in seconds. */
const startPatienceS = 120;

export interface ClaimName {
  namespace: string;
  name: string;
}

/** The class of the claims that are served. */
export const goodClass = 'good';

/** Creates `NAME-0` and so on, many at a time. */
export async function createClaims(
  stage: GreyStage,
  { namespace, name, claims, className, annotations }: ClaimLoad,
): Promise<void> {
  await inParallel(claims, width, (index) =>
    stage.createClaim({ namespace, name: `${name}-${index}` }, className, annotations && { annotations }),
  );
}

export interface ClaimLoad extends ClaimName {
  /** The number of claims. */
  claims: number;
  className: string;
  annotations?: Record<string, string>;
}

/** Seconds until the claim is bound; `Infinity` if it is not bound within `patienceS`. */
export async function secondsToBound(
  { client }: GreyStage,
  claim: ClaimName,
  { fromMs = performance.now(), patienceS }: { fromMs?: number; patienceS: number },
): Promise<number> {
  for (;;) {
    const { status } = await client.get<PersistentVolumeClaim>(persistentVolumeClaims, claim);
    const passedS = (performance.now() - fromMs) / 1000;
    if (status?.phase === 'Bound') return passedS;
    if (passedS > patienceS) return Infinity;
    await delay(25);
  }
}

/** Creates a claim and waits. @returns the seconds until it is bound, or `Infinity`. */
export async function secondsOf(
  stage: GreyStage,
  claim: ClaimName,
  { className = goodClass, patienceS }: { className?: string; patienceS: number },
): Promise<number> {
  const fromMs = performance.now();
  await stage.createClaim(claim, className);
  return await secondsToBound(stage, claim, { fromMs, patienceS });
}

/**
 * Creates a class that is served, starts a sidecar, and waits until it has provisioned a first claim of the class.
 *
 * @throws when the claim is not bound in time.
 */
export async function startServing(
  stage: GreyStage,
  { className = goodClass, ...options }: SidecarOptions & { className?: string } = {},
): Promise<StartedProcess> {
  await stage.createClass(className, (options.driver ?? stage.drivers[0])?.name ?? '');
  const sidecar = await stage.start(options);
  const claim = { namespace: 'default', name: `first-${className}` };
  if ((await secondsOf(stage, claim, { className, patienceS: startPatienceS })) === Infinity)
    throw new Error(`no claim was served within ${startPatienceS} s\n${sidecar.log().slice(-2000)}`);
  return sidecar;
}
