import type { ClusterJournalOptions } from './journal-options.ts';
import { forbiddenGraceMs, missingRuleOf } from './write-failure.ts';

/** Whether the journal can be written: logged and counted when that changes. */
export class JournalProtection {
  readonly #options: ClusterJournalOptions;
  #refusal: Error | undefined;
  #retryAtMs = 0;

  constructor(options: ClusterJournalOptions) {
    this.#options = options;
  }

  get isRefused(): boolean {
    return this.#refusal !== undefined;
  }

  get isRetryDue(): boolean {
    return this.isRefused && this.#options.clock.monotonicMs() >= this.#retryAtMs;
  }

  refuse(error: Error): void {
    const { clock, logger, metrics, namespace, lockName, retryMs = 60_000 } = this.#options;
    const isNew = this.#refusal === undefined;
    const addRule = missingRuleOf(error);
    // a server that has just started may know some of its roles only
    const isEarly = isNew && addRule !== undefined;
    this.#retryAtMs = clock.monotonicMs() + (isEarly ? Math.min(retryMs, forbiddenGraceMs) : retryMs);
    this.#refusal = error;
    if (!isNew) return;
    metrics?.isProtected(false);
    logger.error(
      { namespace, journal: `${lockName}-journal-0`, err: error, ...(addRule !== undefined && { addRule }) },
      'The intent journal cannot be written: a crash may leak volumes until this is fixed; no restart is needed',
    );
  }

  restore(): void {
    const { logger, metrics } = this.#options;
    metrics?.isProtected(true);
    if (this.#refusal === undefined) return;
    this.#refusal = undefined;
    logger.info({}, 'The intent journal can be written again');
  }
}
