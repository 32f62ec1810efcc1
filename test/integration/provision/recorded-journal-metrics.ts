import { noRecords } from '../../../src/provision/intent-journal/intent-journal.ts';
import {
  type JournalMetrics,
  noJournalMetrics,
  type OpenRecords,
} from '../../../src/provision/intent-journal/journal-metrics.ts';

/** What the controller counts about open records. */
export function recordedJournalMetrics() {
  let open = (): OpenRecords => ({ byPhase: noRecords(), waiting: new Map(), oldestMs: Infinity });
  const seen = {
    get open() {
      return open().byPhase;
    },
    oldestMs: () => open().oldestMs,
    revoked: 0,
    replayed: 0,
    reported: [] as string[],
    /** How many open records wait now, by what for. */
    waiting: () => open().waiting,
  };
  const metrics: JournalMetrics = {
    ...noJournalMetrics,
    open: (read) => {
      open = read;
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
