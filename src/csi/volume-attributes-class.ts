import { goQuote } from '../base/go-quote.ts';
import { shortValue } from '../base/short-value.ts';
import { ApiError, isUnservedResource } from '../kube/client/api-error.ts';
import type { KubeClient } from '../kube/client/kube-client.ts';
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import type { AttributesClassApi } from './attributes-class-api.ts';
import { failingAs } from './failing-as.ts';

/** storage.k8s.io VolumeAttributesClass; its versions differ in name only. */
export interface VolumeAttributesClass extends KubeObject {
  driverName: string;
  parameters?: Record<string, string>;
}

export const volumeAttributesClasses: Resource = {
  group: 'storage.k8s.io',
  version: 'v1',
  plural: 'volumeattributesclasses',
  kind: 'VolumeAttributesClass',
  namespaced: false,
};

/** Served by 1.31 to 1.36, off by default; the only version before 1.34. */
export const olderAttributesClassVersions = ['v1beta1'];

/**
 * The mutable parameters a claim's attributes class gives, read live (Kubernetes, "Volume Attributes Classes").
 *
 * @throws {ProvisionError} state `no-change` with the API's own text when it cannot be read, `finished` when it is for
 * another driver.
 */
export async function mutableParameters(options: {
  client: KubeClient;
  /** Absent: v1 is served. */
  api?: AttributesClassApi | undefined;
  name: string;
  driverName: string;
  signal?: AbortSignal | undefined;
}): Promise<Record<string, string>> {
  const { name, driverName } = options;
  const attributesClass = await failingAs('no-change', () => readClass(options));
  if (attributesClass.driverName !== driverName) {
    throw new ProvisionError(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
      { state: 'finished' },
    );
  }
  return { ...attributesClass.parameters };
}

/** Max reads after the first, each over a new connection: the first of these may lead to the same API server. */
const maxRetries = 2;

/** Reads in the version that is known to be served, and again where that has changed or another server has it. */
async function readClass(options: Parameters<typeof mutableParameters>[0]): Promise<VolumeAttributesClass> {
  const { client, api, name, signal } = options;
  const read = (resource: Resource, newConnection = false): Promise<VolumeAttributesClass> =>
    client.get(resource, { name }, { signal, newConnection });
  if (api === undefined) return read(volumeAttributesClasses);
  if (api.isMissing)
    throw new Error(`volume attributes class ${goQuote(shortValue(name))} cannot be read: the API is not served`);
  for (let retries = 0; ; retries++) {
    try {
      return await read(api.served, retries > 0);
    } catch (error) {
      if (retries === maxRetries || !dependsOnServer(error)) throw error;
      if (retries === 0 && (await api.check(signal)) !== 'present') throw error;
    }
  }
}

/** An older API server has no such API, or fails to read from etcd what a newer one has saved in a later version (HTTP 500). */
function dependsOnServer(error: unknown): boolean {
  return isUnservedResource(error) || (error instanceof ApiError && error.code === 500);
}
