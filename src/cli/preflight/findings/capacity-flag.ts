/** The CSIDriver asks the scheduler to compare the free storage, and nobody publishes it; or the reverse. */
import { driverOf } from '../driver-names.ts';
import { readArguments } from '../read-arguments.ts';
import type { SidecarFacts } from '../sidecar-facts.ts';
import { defineFinding } from './preflight-finding.ts';

export const capacityFlag = defineFinding({
  name: 'capacity',
  check(facts) {
    const driver = driverOf(facts.workload, facts);
    if (driver === undefined) return [];
    const isCompared = driver.fields.part('spec')?.flag('storageCapacity') ?? false;
    if (isCompared && !isPublished(facts, driver.name)) {
      return [
        {
          level: 'must',
          message: `CSIDriver ${driver.name} has storageCapacity: true, and no sidecar of it has --enable-capacity: there are no CSIStorageCapacity objects, so the scheduler finds no storage on any node, and Pods with a claim of a WaitForFirstConsumer class are not scheduled.`,
          cure: 'Set --enable-capacity, with its rights, or storageCapacity: false in the CSIDriver.',
        },
      ];
    }
    if (isCompared || !facts.arguments.values['enable-capacity']) return [];
    return [
      {
        level: 'warning',
        message: `--enable-capacity, and CSIDriver ${driver.name} does not have storageCapacity: true: CSIStorageCapacity objects are published, and the scheduler does not read them.`,
        cure: 'Set storageCapacity: true in the CSIDriver, or leave out --enable-capacity.',
      },
    ];
  },
});

/** By this sidecar or another one of the driver, such as those on its nodes. */
function isPublished(facts: SidecarFacts, driver: string): boolean {
  return facts.sidecars
    .filter(({ workload }) => workload === facts.workload || driverOf(workload, facts)?.name === driver)
    .some(({ workload, container }) => readArguments(container, workload.namespace).values['enable-capacity']);
}
