import type { SandboxObject } from './client.ts';
import { at, copyJson, isObject, objectAt } from './json.ts';
import type { JsonObject } from './json.ts';
import { StatusError } from './status-error.ts';

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
