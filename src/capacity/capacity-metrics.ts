import { gauge, type MetricRegistry } from '../base/metrics.ts';

/** How many capacity objects there are and should be. */
export interface CapacityCounts {
  /** Objects that should exist. */
  goal: number;
  /** Of these, those that do. */
  current: number;
  /** Objects of ours that exist and should not, except duplicates of one that should. */
  obsolete: number;
}

/** Called at each scrape. */
export interface CapacityMetrics {
  /** Sets the source of the counts; before, all are zero. */
  observe(counts: () => CapacityCounts): void;
}

/** Registers the `csistoragecapacities_*` families. @throws {Error} when the registry has them already. */
export function capacityMetrics(registry: MetricRegistry): CapacityMetrics {
  let counts = (): CapacityCounts => ({ goal: 0, current: 0, obsolete: 0 });
  const common = { registry, stability: 'ALPHA' } as const;
  gauge({
    ...common,
    name: 'csistoragecapacities_desired_goal',
    help: 'Number of CSIStorageCapacity objects that are supposed to be managed automatically.',
    collect: (each) => each.set(counts().goal),
  });
  gauge({
    ...common,
    name: 'csistoragecapacities_desired_current',
    help: 'Number of CSIStorageCapacity objects that exist and are supposed to be managed automatically.',
    collect: (each) => each.set(counts().current),
  });
  gauge({
    ...common,
    name: 'csistoragecapacities_obsolete',
    help:
      'Number of CSIStorageCapacity objects that exist and will be deleted automatically. Objects that exist and may ' +
      'need an update are not considered obsolete and therefore not included in this value.',
    collect: (each) => each.set(counts().obsolete),
  });
  return {
    observe: (source) => {
      counts = source;
    },
  };
}
