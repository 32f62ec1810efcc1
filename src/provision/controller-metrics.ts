/** What a controller counts. */
import { type Clock, systemClock } from '../base/clock.ts';
import { counter, histogram, type MetricRegistry } from '../base/metrics.ts';

/** What the controller counts; times in seconds. `class` and `source` may be empty. */
export interface ControllerMetrics {
  /** Called once, with a function that says which classes exist: claims may name any class. */
  followClasses?(exists: (name: string) => boolean): void;
  provisioned(labels: { class: string; source: string }, seconds: number): void;
  /** Also counts attempts that end without retry: volume exists, Block refused, foreign class, ignored, rescheduled. */
  provisionFailed(labels: { class: string; source: string }): void;
  deleted(labels: { class: string }, seconds: number): void;
  deleteFailed(labels: { class: string }): void;
}

const nothing = (): void => undefined;

/** Counts nothing: the default. */
export const noMetrics: ControllerMetrics = {
  provisioned: nothing,
  provisionFailed: nothing,
  deleted: nothing,
  deleteFailed: nothing,
};

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Users choose the class and the source of a claim: at most this many that are not known have series of their own. */
const maxUnknownClasses = 100;
const maxUnknownSources = 20;
/** The kinds of data sources that the provisioner itself handles; empty: no source. */
const handledSources: ReadonlySet<string> = new Set(['', 'PersistentVolumeClaim', 'VolumeSnapshot']);

interface ClaimLabels {
  class: string;
  source: string;
}

/**
 * Registers the six `controller_*` families. The series of a class that does not exist are removed an hour after they
 * last changed; if there are too many such classes, the rest are counted together.
 *
 * @throws {Error} when the registry has them already.
 */
export function prometheusMetrics(registry: MetricRegistry, options: { clock?: Clock } = {}): ControllerMetrics {
  const { clock = systemClock } = options;
  let classExists = (_name: string): boolean => false;
  const isKnown = (name: string): boolean => name === '' || classExists(name);
  const classes = new BoundedLabel({ isKnown, maxUnknown: maxUnknownClasses, clock });
  const isHandled = (kind: string): boolean => handledSources.has(kind);
  const sources = new BoundedLabel({ isKnown: isHandled, maxUnknown: maxUnknownSources, clock });
  const families = registerFamilies(registry, dropStale);
  const claimSets = new Map<string, ClaimLabels>();

  function dropStale(): void {
    const staleClasses = classes.dropStale();
    const staleSources = sources.dropStale();
    for (const name of staleClasses) for (const family of families.ofVolumes) family.remove({ class: name });
    for (const [key, labels] of claimSets) {
      if (!staleClasses.has(labels.class) && !staleSources.has(labels.source)) continue;
      claimSets.delete(key);
      for (const family of families.ofClaims) family.remove({ ...labels });
    }
  }
  const ofClaim = (given: ClaimLabels): ClaimLabels => {
    const labels = { class: classes.valueFor(given.class), source: sources.valueFor(given.source) };
    claimSets.set(`${labels.class} ${labels.source}`, labels);
    return labels;
  };
  const ofVolume = (given: { class: string }): { class: string } => ({ class: classes.valueFor(given.class) });

  return {
    followClasses: (exists) => (classExists = exists),
    provisioned: (given, seconds) => {
      const labels = ofClaim(given);
      families.provisioned.inc(labels);
      families.provisionSeconds.observe(labels, seconds);
    },
    provisionFailed: (given) => families.provisionFailed.inc(ofClaim(given)),
    deleted: (given, seconds) => {
      const labels = ofVolume(given);
      families.deleted.inc(labels);
      families.deleteSeconds.observe(labels, seconds);
    },
    deleteFailed: (given) => families.deleteFailed.inc(ofVolume(given)),
  };
}

/** @param collect - called before each scrape. */
function registerFamilies(registry: MetricRegistry, collect: () => void) {
  const claimLabels = ['class', 'source'] as const;
  const volumeLabels = ['class'] as const;
  const provisioned = counter({
    registry,
    labels: claimLabels,
    name: 'controller_persistentvolumeclaim_provision_total',
    help: 'Persistent volumes provisioned, by class and source of the claim',
    collect,
  });
  const provisionFailed = counter({
    registry,
    labels: claimLabels,
    name: 'controller_persistentvolumeclaim_provision_failed_total',
    help: 'Failed attempts to provision a persistent volume, by class and source of the claim',
  });
  const provisionSeconds = histogram({
    registry,
    labels: claimLabels,
    buckets,
    name: 'controller_persistentvolumeclaim_provision_duration_seconds',
    help: 'Seconds taken to provision persistent volumes, by class and source of the claim',
  });
  const deleted = counter({
    registry,
    labels: volumeLabels,
    name: 'controller_persistentvolume_delete_total',
    help: 'Persistent volumes deleted, by class',
  });
  const deleteFailed = counter({
    registry,
    labels: volumeLabels,
    name: 'controller_persistentvolume_delete_failed_total',
    help: 'Failed attempts to delete a persistent volume, by class',
  });
  const deleteSeconds = histogram({
    registry,
    labels: volumeLabels,
    buckets,
    name: 'controller_persistentvolume_delete_duration_seconds',
    help: 'Seconds taken to delete persistent volumes, by class',
  });
  return {
    provisioned,
    provisionFailed,
    provisionSeconds,
    deleted,
    deleteFailed,
    deleteSeconds,
    ofClaims: [provisioned, provisionFailed, provisionSeconds],
    ofVolumes: [deleted, deleteFailed, deleteSeconds],
  };
}

/** The label of all values beyond the limit: no object can have this name. */
const otherValues = '(other)';
/** Unknown values are dropped after this time, in milliseconds: scrapers have had time to read the last count. */
const staleMs = 3_600_000;
/** Max length of the name of an object, in characters. */
const maxLength = 253;

/** Limits the values of a label that users choose, so that they cannot create any number of series. */
class BoundedLabel {
  readonly #isKnown: (value: string) => boolean;
  readonly #maxUnknown: number;
  readonly #clock: Clock;
  /** The values in use, and the monotonic time in milliseconds at which each was last used or known. */
  readonly #lastMs = new Map<string, number>();

  /** @param options.maxUnknown - how many unknown values may be in use at a time. */
  constructor(options: { isKnown: (value: string) => boolean; maxUnknown: number; clock: Clock }) {
    this.#isKnown = options.isKnown;
    this.#maxUnknown = options.maxUnknown;
    this.#clock = options.clock;
  }

  /** The value to count under: the given one, or `otherValues` if too many are in use. */
  valueFor(value: string): string {
    if (!this.#mayUse(value)) return otherValues;
    this.#lastMs.set(value, this.#clock.monotonicMs());
    return value;
  }

  /** Drops the values that have been neither used nor known for an hour, and returns them. */
  dropStale(): ReadonlySet<string> {
    const nowMs = this.#clock.monotonicMs();
    const stale = new Set<string>();
    for (const [value, lastMs] of this.#lastMs) {
      if (this.#isKnown(value)) this.#lastMs.set(value, nowMs);
      else if (nowMs - lastMs >= staleMs) {
        stale.add(value);
        this.#lastMs.delete(value);
      }
    }
    return stale;
  }

  #mayUse(value: string): boolean {
    if (this.#lastMs.has(value) || this.#isKnown(value)) return true;
    if (value.length > maxLength) return false;
    let unknown = 0;
    for (const used of this.#lastMs.keys()) if (!this.#isKnown(used)) unknown++;
    return unknown < this.#maxUnknown;
  }
}
