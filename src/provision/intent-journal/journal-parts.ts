import type { Heartbeats } from './heartbeats.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import type { JournalState } from './journal-state.ts';
import type { ShardStorage } from './shard-storage.ts';
import type { WriterStatus } from './writer-status.ts';

/** What the writer, the reader and the other parts of a journal share. None of it refers to them. */
export interface JournalParts {
  journal: ClusterJournalOptions;
  /** This process. */
  me: string;
  state: JournalState;
  status: WriterStatus;
  storage: ShardStorage;
  heartbeats: Heartbeats;
}
