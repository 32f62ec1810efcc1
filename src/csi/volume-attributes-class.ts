import type { KubeClient } from '../kube/kube-client.ts';
import type { KubeObject, Resource } from '../kube/kube-object.ts';
import { ProvisionError } from '../provision/provisioner.ts';
import { failingAs } from './failing-as.ts';

/** storage.k8s.io/v1 VolumeAttributesClass. */
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

/**
 * The mutable parameters a claim's attributes class gives, read live (Kubernetes, "Volume Attributes Classes").
 *
 * @throws {ProvisionError} state `no-change` with the API's own text when it cannot be read, `finished` when it is for
 * another driver.
 */
export async function mutableParameters(options: {
  client: KubeClient;
  name: string;
  driverName: string;
  signal?: AbortSignal | undefined;
}): Promise<Record<string, string>> {
  const { client, name, driverName, signal } = options;
  const attributesClass = await failingAs('no-change', () =>
    client.get<VolumeAttributesClass>(volumeAttributesClasses, { name }, { signal }),
  );
  if (attributesClass.driverName !== driverName) {
    throw new ProvisionError(
      `VAC ${name} referenced in PVC is for driver ${attributesClass.driverName} which does not match driver name ${driverName}`,
      { state: 'finished' },
    );
  }
  return { ...attributesClass.parameters };
}
