/** Metrics of what people ask: which claims wait and fail, which volumes stay, and why, in the words of `why`. */
import type { Clock } from '../../base/clock.ts';
import { nextSlice, sliceSpent } from '../../base/event-loop.ts';
import { gauge, type MetricRegistry } from '../../base/metrics.ts';
import type { Cause } from '../../explain/causes/cause.ts';
import { deletionMeaning } from '../../explain/causes/failed-deletion.ts';
import type { ClaimProgress, ClaimStep, ReleasedVolume, ReleaseStep } from '../../provision/object-progress.ts';
import type { ControllerStatus } from '../../provision/controller-status.ts';

/** Scrapes within this time share one count, in milliseconds: it goes through all claims and volumes. */
const sharedMs = 10_000;

/** Of claims whose last attempt did not fail. */
const causeOfStep: Readonly<Record<ClaimStep, Cause>> = {
  syncing: 'in-progress',
  queued: 'in-progress',
  saving: 'in-progress',
  retrying: 'in-progress',
  waiting: 'in-progress',
  'not-handed-over': 'not-handed-over',
  'class-missing': 'class-not-found',
  'waiting-for-consumer': 'waits-for-consumer',
  'volume-made': 'volume-made',
  idle: 'in-progress',
};

/** Of volumes whose last attempt did not fail. */
const causeOfRelease: Readonly<Record<ReleaseStep, Cause>> = {
  syncing: 'deleting',
  queued: 'deleting',
  retrying: 'deleting',
  'earlier-call': 'deleting',
  'shared-storage': 'shared-storage',
  'other-source': 'other-source',
  idle: 'attached',
};

interface Count {
  count: number;
  /** Since when the oldest of them is so, in milliseconds since the Unix epoch. */
  sinceMs: number;
}

type CountedStatus = Pick<ControllerStatus, 'waitingClaims' | 'releasedVolumes'>;

class Counts extends Map<string, Count> {
  note(cause: string, sinceMs: number): void {
    const known = this.get(cause);
    if (known === undefined) this.set(cause, { count: 1, sinceMs });
    else {
      known.count += 1;
      known.sinceMs = Math.min(known.sinceMs, sinceMs);
    }
  }
}

interface AllCounts {
  waiting: Counts;
  failing: Counts;
  released: Counts;
}

export class CauseMetrics {
  readonly #clock: Clock;
  #controller: CountedStatus | undefined;
  #counted: { atMs: number; counts: Promise<AllCounts> } | undefined;

  constructor({ registry, clock }: { registry: MetricRegistry; clock: Clock }) {
    this.#clock = clock;
    this.#pair(registry, {
      of: 'waiting',
      name: 'waiting_claims',
      help: 'Claims of this driver without a volume whose last attempt did not fail, by cause.',
      oldest: 'Age of the oldest claim that waits, by cause.',
    });
    this.#pair(registry, {
      of: 'failing',
      name: 'failing_claims',
      help: 'Claims of this driver whose last attempt failed, by cause.',
      oldest: 'Time since the first of the attempts in a row that failed, of the claim that fails longest, by cause.',
    });
    this.#pair(registry, {
      of: 'released',
      name: 'released_volumes',
      help: 'PersistentVolumes whose storage is to be deleted, by cause.',
      oldest: 'Time since the release of the oldest of them, by cause.',
    });
  }

  /** What is counted from now on: only the instance that works has anything to count. */
  follow(controller: CountedStatus): void {
    this.#controller = controller;
  }

  #pair(
    registry: MetricRegistry,
    { of, name, help, oldest }: { of: keyof AllCounts; name: string; help: string; oldest: string },
  ): void {
    const labels = ['cause'] as const;
    gauge({
      registry,
      name,
      help,
      labels,
      collect: async (metric) => {
        const counts = (await this.#shared())[of];
        metric.reset();
        for (const [cause, { count }] of counts) metric.set({ cause }, count);
      },
    });
    gauge({
      registry,
      name: `${name}_oldest_seconds`,
      help: oldest,
      labels,
      collect: async (metric) => {
        const counts = (await this.#shared())[of];
        metric.reset();
        const nowMs = this.#clock.wallMs();
        for (const [cause, { sinceMs }] of counts) metric.set({ cause }, Math.max(0, (nowMs - sinceMs) / 1000));
      },
    });
  }

  #shared(): Promise<AllCounts> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#counted === undefined || nowMs - this.#counted.atMs >= sharedMs)
      this.#counted = { atMs: nowMs, counts: this.#count() };
    return this.#counted.counts;
  }

  /** In slices. */
  async #count(): Promise<AllCounts> {
    const counts: AllCounts = { waiting: new Counts(), failing: new Counts(), released: new Counts() };
    const nowMs = this.#clock.wallMs();
    for (const claim of this.#controller?.waitingClaims() ?? []) {
      if (claim !== undefined) noteClaim(counts, claim, nowMs);
      if (sliceSpent()) await nextSlice();
    }
    for (const volume of this.#controller?.releasedVolumes() ?? []) {
      if (volume !== undefined) noteVolume(counts, volume, nowMs);
      if (sliceSpent()) await nextSlice();
    }
    return counts;
  }
}

/** One that is `idle` is the work of another instance, or has nothing that could be done for it. */
function noteClaim(
  { waiting, failing }: AllCounts,
  { step, lastError, createdAt }: ClaimProgress,
  nowMs: number,
): void {
  if (step === 'idle' && lastError === undefined) return;
  const bySteps = step === 'class-missing' || step === 'volume-made';
  const cause = lastError?.cause === undefined || bySteps ? causeOfStep[step] : lastError.cause;
  if (lastError?.kind === 'failed' && step !== 'volume-made') failing.note(cause, lastError.sinceMs);
  else waiting.note(cause, Date.parse(createdAt) || nowMs);
}

function noteVolume({ released }: AllCounts, { step, lastError, releasedAt }: ReleasedVolume, nowMs: number): void {
  const cause =
    lastError === undefined ? causeOfRelease[step] : deletionMeaning(lastError.message, lastError.cause).cause;
  released.note(cause, Date.parse(releasedAt ?? '') || (lastError?.sinceMs ?? nowMs));
}
