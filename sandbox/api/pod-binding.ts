import { arrayAt, isObject, objectAt, stringAt } from './json.ts';
import type { ObjectRegistry, Target } from './object-registry.ts';
import { StatusError } from './status-error.ts';
import { timestamp } from './timestamps.ts';

/**
 * Assigns a pod to a node, once, and notes that it is scheduled.
 *
 * @throws {StatusError} `Conflict` if the pod has a node or is being deleted, `NotFound`.
 */
export function bindPod(registry: ObjectRegistry, pod: Target, node: string, nowMs: number): void {
  if (node === '') throw new StatusError('BadRequest', 'target.name is required');
  registry.patch(
    pod,
    (current) => {
      const assigned = stringAt(current, 'spec', 'nodeName');
      if (assigned !== '')
        throw conflict(pod, `pod ${pod.name} is already assigned to node ${JSON.stringify(assigned)}`);
      if (stringAt(current, 'metadata', 'deletionTimestamp') !== '') {
        throw conflict(pod, `pod ${pod.name} is being deleted, cannot be assigned to a host`);
      }
      const others = arrayAt(current, 'status', 'conditions').filter(
        (condition) => !isObject(condition) || condition['type'] !== 'PodScheduled',
      );
      const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: timestamp(nowMs) };
      return {
        ...current,
        spec: { ...objectAt(current, 'spec'), nodeName: node },
        status: { ...objectAt(current, 'status'), conditions: [...others, scheduled] },
      };
    },
    'everything',
  );
}

function conflict({ name }: Target, why: string): StatusError {
  return new StatusError('Conflict', `Operation cannot be fulfilled on pods/binding ${JSON.stringify(name)}: ${why}`, {
    details: { name, kind: 'pods/binding' },
  });
}
