import { mayUse } from '../../kube/client/access-review.ts';
import {
  AlreadyExistsError,
  ApiError,
  ConflictError,
  ForbiddenError,
  isRefusal,
  NotFoundError,
  TransportError,
} from '../../kube/client/api-error.ts';
import type { ClusterJournalOptions } from './journal-options.ts';
import { journalLeases, OtherFormatError, ShardAlteredError, ShardStorage } from './shard-storage.ts';

/**
 * What an error of a request means for the journal.
 *
 * - `conflict`: the shard has changed since it was read.
 * - `gone`: the shard's object does not exist; after a creation: its namespace, or the whole resource.
 * - `forbidden`: a permission is missing, or the server has just started and knows no permissions yet.
 * - `refused`: the same again for as long as nobody changes the cluster.
 * - `unexpected`: neither an API error nor a connection error, so a bug in this program.
 * - `transient`: to be repeated; a write may have been carried out.
 * - `ended`: nothing leaves this process any more.
 */
type Classified = 'conflict' | 'gone' | 'forbidden' | 'refused' | 'unexpected' | 'transient' | 'ended';

/** What a failed request means to its caller: `forbidden` and `unexpected` have become `refused` or `transient`. */
export type RequestFailure = Exclude<Classified, 'forbidden' | 'unexpected'>;

/**
 * How long requests may be forbidden, or fail unexpectedly, before that counts as refused, in milliseconds: an API server that
 * has just started forbids everything until it has read its roles.
 */
export const refusalGraceMs = 3000;

/** Whether this process may still write the journal, of `WriterStatus`. */
type WriterState = Readonly<{ fencedOrEnded: AbortSignal; requestSignal: AbortSignal; hasEnded: boolean }>;

/** The failures of one request that is repeated until it succeeds. */
export class RequestFailures {
  readonly #journal: ClusterJournalOptions;
  readonly #status: WriterState;
  #uncertainSinceMs: number | undefined;

  constructor({ journal, status }: { journal: ClusterJournalOptions; status: WriterState }) {
    this.#journal = journal;
    this.#status = status;
  }

  /** What a failure means: one that is forbidden or unexpected is refused once that is certain, and transient until then. */
  async classify(error: unknown): Promise<RequestFailure> {
    if (this.#status.fencedOrEnded.aborted || this.#status.hasEnded) return 'ended'; // whatever it is, the next try would end, too
    const failure = classifyFailure(error);
    if (failure !== 'forbidden' && failure !== 'unexpected') {
      this.#uncertainSinceMs = undefined;
      return failure;
    }
    const nowMs = this.#journal.clock.monotonicMs();
    this.#uncertainSinceMs ??= nowMs;
    const isOver = nowMs - this.#uncertainSinceMs >= refusalGraceMs;
    return isOver || (failure === 'forbidden' && (await this.#isDenied())) ? 'refused' : 'transient';
  }

  /**
   * Whether the API server says that this process may not use the Leases of the journal: a server that has just started, and knows no
   * roles yet, forbids the question as well. False also where nobody knows, as the question is refused or not served.
   */
  async #isDenied(): Promise<boolean> {
    const { client, namespace } = this.#journal;
    const { verbs = [] } = journalLeases;
    const about = { namespace, name: new ShardStorage(this.#journal).nameOf(0), verbs };
    try {
      return !(await mayUse(client, journalLeases, about, {
        optional: 'reported',
        signal: this.#status.requestSignal,
      }));
    } catch {
      return false;
    }
  }
}

function classifyFailure(error: unknown): Classified {
  if (error instanceof ConflictError || error instanceof AlreadyExistsError) return 'conflict';
  if (error instanceof NotFoundError) return 'gone';
  if (error instanceof ForbiddenError) return error.isAdmission ? 'refused' : 'forbidden';
  if (isRefusal(error) || error instanceof OtherFormatError || error instanceof ShardAlteredError) return 'refused';
  return error instanceof ApiError || error instanceof TransportError ? 'transient' : 'unexpected';
}

/** Whether an error comes neither from the API server nor the connection nor the stored data: probably a bug in this program. */
export function isUnexpected(error: unknown): boolean {
  return classifyFailure(error) === 'unexpected';
}

/** The rule to add, where a missing permission is the cause. */
export function missingRuleOf(error: Error): string | undefined {
  return error instanceof ForbiddenError && !error.isAdmission ? error.missingRule : undefined;
}
