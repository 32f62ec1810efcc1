import type { ControllerMetrics } from '../../../src/provision/controller-metrics.ts';

/** `pt` and `pf`: provisioned and failed; `dt` and `df`: deleted and failed. */
export type MetricName = 'pt' | 'pf' | 'dt' | 'df';

/** One call of the metrics. */
export interface CountedMetric {
  name: MetricName;
  labels: { class: string; source?: string };
  /** Only of `pt` and `dt`. */
  seconds?: number;
}

/** Metrics that keep what is recorded. */
export class RecordedMetrics implements ControllerMetrics {
  readonly counted: CountedMetric[] = [];
  readonly #onCount: () => void;

  constructor(onCount: () => void) {
    this.#onCount = onCount;
  }

  /** How often each was counted, zeros left out: `{ pt: 1, pf: 2 }`. */
  get totals(): Partial<Record<MetricName, number>> {
    const totals: Partial<Record<MetricName, number>> = {};
    for (const { name } of this.counted) totals[name] = (totals[name] ?? 0) + 1;
    return totals;
  }

  provisioned(labels: { class: string; source: string }, seconds: number): void {
    this.#count({ name: 'pt', labels, seconds });
  }

  provisionFailed(labels: { class: string; source: string }): void {
    this.#count({ name: 'pf', labels });
  }

  deleted(labels: { class: string }, seconds: number): void {
    this.#count({ name: 'dt', labels, seconds });
  }

  deleteFailed(labels: { class: string }): void {
    this.#count({ name: 'df', labels });
  }

  #count(metric: CountedMetric): void {
    this.counted.push(metric);
    this.#onCount();
  }
}
