import type { SandboxObject } from './client.ts';
import { arrayAt, at, copyJson, isObject, type JsonObject, objectAt, stringAt } from './json.ts';
import type { ObjectRegistry, Target } from './object-registry.ts';
import type { ResourceTarget } from './request-target.ts';
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

/** What kubectl does inside a pod, by subresource. */
const streams: Readonly<Record<string, string>> = {
  log: 'there are no logs',
  exec: 'no command can run in it',
  attach: 'there is nothing to attach to',
  portforward: 'no port is open in it',
};

/** The 501 for what a pod of the sandbox cannot do; undefined for everything else. */
export function podStreamError({ group, plural, subresource }: ResourceTarget): StatusError | undefined {
  const why = group === '' && plural === 'pods' ? streams[subresource] : undefined;
  if (why === undefined) return undefined;
  return new StatusError('NotImplemented', `the sandbox runs no containers, it only marks pods as running: ${why}`, {
    code: 501,
  });
}

/** The subresource `scale` of a workload (autoscaling/v1 Scale). */
export function scaleOf({ metadata, ...object }: SandboxObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const labels = Object.entries(objectAt(object, 'spec', 'selector', 'matchLabels'));
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: copyJson({ name, namespace, uid, resourceVersion, creationTimestamp }),
    spec: { replicas: at(object, 'spec', 'replicas') ?? 1 },
    status: {
      replicas: at(object, 'status', 'replicas') ?? 0,
      selector: labels.map(([key, value]) => `${key}=${String(value)}`).join(','),
    },
  };
}

/** The workload with the replicas of a Scale. @throws {StatusError} `BadRequest` for a number that cannot be. */
export function withScale(object: JsonObject, scale: JsonObject): JsonObject {
  const replicas = at(scale, 'spec', 'replicas');
  if (typeof replicas !== 'number' || !Number.isInteger(replicas) || replicas < 0) {
    throw new StatusError('BadRequest', 'spec.replicas must be a whole number, 0 or more');
  }
  const spec = isObject(object['spec']) ? object['spec'] : {};
  return { ...object, spec: { ...spec, replicas } };
}
