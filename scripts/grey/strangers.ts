/** Large claims of another driver, and little memory. */
import { setTimeout as delay } from 'node:timers/promises';
import { peakMb } from '../process-usage.ts';
import { type Measured, megabytes, yesOrNo } from './goals.ts';
import { openGreyStage, type Run } from './stage.ts';
import { createClaims, goodClass, secondsOf, startServing } from './tenants.ts';

const patienceS = 60;
/** The image's limit of 70 %, for a container with 512 MiB. */
const heapLimit = '--max-old-space-size=358';

/** The annotations of each claim; the API server allows 256 KiB. */
const annotations = { 'example.com/note': 'x'.repeat(240_000) };

/** @returns peak memory of the sidecar, and whether it serves a claim. */
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
  const waitedS = await secondsOf(stage, { namespace: 'default', name: 'last' }, { className: goodClass, patienceS });
  const served = sidecar.running() && waitedS < Infinity;
  return [megabytes(sidecar.running() ? peakMb(sidecar.pid) : Infinity), yesOrNo(served)];
}
