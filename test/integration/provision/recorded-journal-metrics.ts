import { noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import { type JournalMetrics, noJournalMetrics } from '../../../src/provision/intent-journal/journal-metrics.ts';

/** What the controller counts about open records. */
export function recordedJournalMetrics() {
  const seen = {
    open: noRecords(),
    oldestMs: (): number | undefined => undefined,
    revoked: 0,
    replayed: 0,
    reported: [] as string[],
    /** How many open records wait now, by what for. */
    waiting: (): ReadonlyMap<string, number> => new Map(),
  };
  const metrics: JournalMetrics = {
    ...noJournalMetrics,
    records: (byPhase) => {
      seen.open = { ...byPhase };
    },
    oldestCreatedAtMs: (read) => {
      seen.oldestMs = read;
    },
    waiting: (read) => {
      seen.waiting = read;
    },
    revoked: () => {
      seen.revoked++;
    },
    replayed: () => {
      seen.replayed++;
    },
    reported: (reason) => {
      seen.reported.push(reason);
    },
  };
  return { seen, metrics };
}
