import { ExponentialLimiter } from '../../../src/kube/queue/rate-limiter.ts';
import type { FoundIntent, IntentRecord } from '../../../src/provision/intent-journal/intent-journal.ts';
import type { StorageClass } from '../../../src/provision/objects.ts';
import { ManualClock } from '../../support/fakes/manual-clock.ts';
import { patienceMs } from '../../support/patience.ts';
import { MemoryJournal } from './memory-journal.ts';
import { recordedJournalMetrics } from './recorded-journal-metrics.ts';
import { Rig, type RigOptions } from './rig.ts';
import { ScriptedBackend } from './scripted-backend.ts';

/** How long a call may take, in milliseconds. As 1.5 times this is over a minute, nothing is deleted for a minute after a take-over. */
export const maxCallMs = 60_000;

/** After which a late call has come to its end, in milliseconds: then what no claim wants is deleted. */
export const lateMs = 1.5 * maxCallMs;

export interface RecoverySceneOptions {
  /** Records that an earlier process has left; made when the claim `ns/a` is there. `since` is of then, unless it is given. */
  found?: (uid: string) => FoundIntent[];
  rig?: RigOptions;
  class?: Partial<Omit<StorageClass, 'metadata'>>;
}

/**
 * Rig with a recoverable backend, a journal, time standing still, back-off from one second, class `c1` and a claim `ns/a`
 * that goes at once if deleted.
 */
export async function recoveryScene(options: RecoverySceneOptions = {}) {
  const clock = new ManualClock();
  const backend = new ScriptedBackend();
  const { seen, metrics: journalMetrics } = recordedJournalMetrics();
  const journal = new MemoryJournal();
  const limiter = new ExponentialLimiter({ baseMs: 1000, maxMs: 300_000 });
  const rig = await Rig.prepare({
    clock,
    limiter,
    ...options.rig,
    api: { bookmarkIntervalMs: 10, ...options.rig?.api }, // a proof often waits for one
    controller: { provisioner: backend, intentJournal: journal, journalMetrics, maxCallMs, ...options.rig?.controller },
  });
  rig.addClass('c1', { reclaimPolicy: 'Delete', ...options.class });
  const { uid, resourceVersion: since = '' } = rig.addClaim('a', { finalizers: [] }).metadata;
  for (const found of options.found?.(uid) ?? []) journal.leave({ ...found, record: { since, ...found.record } });
  const name = `pvc-${uid}`;
  /** Lets time pass, second by second, until the condition holds. */
  const passUntil = async (what: string, read: () => unknown): Promise<void> => {
    await rig.cached();
    const givenUpMs = performance.now() + patienceMs;
    while (read() === undefined || read() === false) {
      if (performance.now() > givenUpMs) throw new Error(`waited in vain for: ${what}`);
      await clock.advance(1000);
    }
  };
  /** Lets time pass, second by second: what is not held back by it happens. */
  const pass = (ms: number): Promise<void> => {
    const endMs = clock.monotonicMs() + ms;
    return passUntil('some time', () => clock.monotonicMs() >= endMs);
  };
  return {
    rig,
    clock,
    backend,
    journal,
    seen,
    uid,
    /** The version of the API server when the claim was made. */
    since,
    name,
    handle: `handle-${name}`,
    /** Lets the time of the latest pause of the claim pass and waits for the sync that follows. */
    passPause: async (): Promise<void> => {
      const syncs = rig.limiter.syncs(uid).length;
      await clock.advance(rig.limiter.delays(uid).at(-1) ?? NaN);
      await rig.synced(uid, syncs + 1);
    },
    passUntil,
    pass,
    /** Lets time pass until nothing is recorded any more. */
    undone: () => passUntil('the record to be closed', () => journal.records.size === 0),
    /** Waits until nothing is recorded any more. */
    closed: () => rig.until('the record to be closed', () => journal.records.size === 0),
    /** Lets time pass until no call of an earlier process can be under way, and waits as `closed`. */
    closedInTime: async (): Promise<void> => {
      await clock.advance(maxCallMs);
      await rig.until('the record to be closed', () => journal.records.size === 0);
    },
  };
}

export type RecoveryScene = Awaited<ReturnType<typeof recoveryScene>>;

/** The record of claim `ns/a` as an earlier process has left it. */
export function leftRecord(uid: string, more: Partial<IntentRecord> = {}): IntentRecord {
  const name = `pvc-${uid}`;
  return {
    claim: { namespace: 'ns', name: 'a', uid },
    volume: {
      name,
      claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace: 'ns', name: 'a', uid },
      className: 'c1',
      provisioner: 'drv',
      defaults: { persistentVolumeReclaimPolicy: 'Delete', capacity: { storage: '1Gi' } },
    },
    plan: { name, parameters: {} },
    phase: 'create',
    createdAt: '2025-12-31T23:59:00.000Z',
    ...more,
  };
}
