import { setTimeout as delay } from 'node:timers/promises';
import type { FaultAction, FaultMatch } from '../../sandbox/api/faults.ts';
import type { Random } from './random.ts';

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
export async function failApi(url: string, random: Random): Promise<void> {
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
